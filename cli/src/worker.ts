import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache()
const { work } = await import('./work.ts')
await work(process.argv[2] ?? '{}')
flushCompileCache()
