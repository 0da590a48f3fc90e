import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { serveCalls } from './quickjs-calls.js'

const worker = new Worker(new URL('./quickjs-raw-worker.js', import.meta.url), { resourceLimits: { stackSizeMb: 8 } })
await once(worker, 'message')
serveCalls(async (code, fresh) => {
  worker.postMessage({ code, fresh })
  const [{ value }] = await once(worker, 'message')
  return value
})
