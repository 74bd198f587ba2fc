// Prints what `import` of each given specifier gives.
const given = await Promise.all(process.argv.slice(2).map(async (name) => [name, Object.keys(await import(name))]))
console.log(JSON.stringify(Object.fromEntries(given)))
