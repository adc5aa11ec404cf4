// Loaded before each script of package.json, because an older Node cannot read the TypeScript files.
if (!process.features.typescript) {
  console.error("The project's own Node 24 is missing, because npm ran no install scripts. Run: npm rebuild");
  process.exit(1);
}
