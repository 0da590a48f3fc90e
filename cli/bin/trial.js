// The entry of the trial process. It is JavaScript, so that the cache is enabled before the first TypeScript file.
import './compile-cache.js'

const isSource = process.execArgv.includes('--conditions=svc-source')
const { tryStart } = await import(isSource ? '../src/trial.ts' : '../dist/trial.js')
tryStart()
