// Copy buttons: the script of the documents, and a part of the script of a chain's page.

/** Creates a button that copies an element's text. */
function makeCopyButton(element, label) {
  const button = Object.assign(document.createElement("button"), {
    className: "copy",
    type: "button",
    textContent: say("copy.copy"),
  });
  button.setAttribute("aria-label", label);
  button.addEventListener("click", async () => {
    button.textContent = (await copy(element)) ? say("copy.copied") : say("copy.pressKeys");
    setTimeout(() => {
      button.textContent = say("copy.copy");
    }, 2_000);
  });
  return button;
}

/**
 * Copies an element's text and returns true. If the browser does not allow this, selects the text and returns false.
 */
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}

for (const code of document.querySelectorAll(".document pre > code")) {
  // In most programs, the first line is a comment with the name of the file.
  const [, name = say("copy.thisCode")] = /^(?:<\?php )?(?:#|\/\/) (.*)/.exec(code.textContent) ?? [];
  code.before(makeCopyButton(code, say("copy.copyNamed", { name })));
}
