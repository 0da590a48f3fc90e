import { definePlugin, type Runtime } from '@svc/core'
import { VerticalRuntime } from '@svc/core/contracts'
import { onlyData } from './errors.ts'
import { itemsOf } from './vertical-file.ts'

export default definePlugin({ provides: VerticalRuntime, setup: () => createRuntime() })

/** Creates the runtime "vertical", which reads a file and runs no code. */
const createRuntime = (): Runtime => ({
  open: ({ plugin, code }) => itemsOf(plugin, code),
  call: ({ plugin }) => Promise.reject(onlyData(plugin)),
  run: () => Promise.reject(onlyData('a script')),
})
