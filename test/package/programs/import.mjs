// Prints what `import` of the given specifier gives.
console.log(JSON.stringify(Object.keys(await import(process.argv[2]))))
