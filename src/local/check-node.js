// Loaded before each script of package.json. An older Node cannot read TypeScript files, so this file is JavaScript.
if (!process.features.typescript) {
  console.error("The project's own Node 24 is missing, because npm ran no install scripts. Run: npm rebuild");
  process.exit(1);
}
