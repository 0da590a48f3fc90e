import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { definePlugin, svcHome } from '@svc/core'
import { Routes } from '@svc/core/contracts'

/** While there is a file of this name in the home, no worker comes up. */
const DEADLY = 'deadly'

/** What goes wrong in a worker: a route that blocks its event loop for ever, and death at its start. */
export default definePlugin({
  setup(scope) {
    if (existsSync(join(svcHome(), DEADLY))) process.kill(process.pid, 'SIGKILL')
    scope.add(Routes, 'stuck', {
      method: 'GET',
      path: '/stuck',
      summary: 'Never answers',
      // as a loop without end does, but for the processor that such a one takes from the tests beside
      handle: async () => ({ text: Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) }),
    })
    scope.add(Routes, 'pid', {
      method: 'GET',
      path: '/pid',
      summary: 'Which worker answers',
      handle: async () => ({ text: String(process.pid) }),
    })
  },
})
