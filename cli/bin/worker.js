// The entry of a worker process. It is JavaScript, so that the cache is enabled before the first TypeScript file.
import './compile-cache.js'
import { flushCompileCache } from 'node:module'

const isSource = process.execArgv.includes('--conditions=svc-source')
const { work } = await import(isSource ? '../src/work.ts' : '../dist/work.js')
await work(process.argv[2])
// flush now, because a server can be killed at any time
flushCompileCache()
