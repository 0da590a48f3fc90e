// The entry of a process that starts a host once, to see whether it can: JavaScript, so that the cache is on before the first TypeScript file is read.
import './compile-cache.js'

const isSource = process.execArgv.includes('--conditions=svc-source')
const { tryStart } = await import(isSource ? '../src/trial.ts' : '../dist/trial.js')
tryStart()
