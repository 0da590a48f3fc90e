// The entry of a worker process: JavaScript, so that the cache is on before the first TypeScript file is read.
import './compile-cache.js'
import { flushCompileCache } from 'node:module'

const isSource = process.execArgv.includes('--conditions=svc-source')
const { work } = await import(isSource ? '../src/work.ts' : '../dist/work.js')
await work(process.argv[2])
// A server may be killed at any time: the next one starts as fast as this one could have.
flushCompileCache()
