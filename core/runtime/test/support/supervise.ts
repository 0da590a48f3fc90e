import { createSupervisor } from '@svc/runtime'

// A supervisor in a process of its own, so that a test can kill it: tells its parent what happens.
const supervisor = createSupervisor<{ port: number }>({
  exec: new URL('./web-worker.ts', import.meta.url).pathname,
  execArgv: process.execArgv,
  onEvent: event => process.send?.(event),
})
await supervisor.start()
