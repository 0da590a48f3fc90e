import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { definePlugin, svcHome } from '@svc/core'
import { Routes, Tools } from '@svc/core/contracts'

/** While there is a file of this name in the home, no worker comes up. */
const DEADLY = 'deadly'

/** What goes wrong in a worker: a tool that blocks its event loop for ever, and death at its start. */
export default definePlugin({
  setup(scope) {
    if (existsSync(join(svcHome(), DEADLY))) process.kill(process.pid, 'SIGKILL')
    scope.add(Tools, 'stuck', {
      description: 'Never answers',
      category: 'text',
      effects: [],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      // as a loop without end does, but for the processor that such a one takes from the tests beside
      call: async () => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
        return { content: [] }
      },
    })
    scope.add(Routes, 'pid', {
      method: 'GET',
      path: '/pid',
      summary: 'Which worker answers',
      handle: async () => ({ text: String(process.pid) }),
    })
  },
})
