import { definePlugin, type Runtime } from '@svc/core'
import { VerticalRuntime } from '@svc/core/contracts'
import { onlyData } from './errors.ts'
import { itemsOf } from './vertical-file.ts'

export default definePlugin({ provides: VerticalRuntime, setup: () => createRuntime() })

/** Makes the runtime "vertical": it reads a plugin's file, and runs nothing. */
const createRuntime = (): Runtime => ({
  open: ({ plugin, code }) => itemsOf(plugin, code),
  call: ({ plugin }) => Promise.reject(onlyData(plugin)),
  run: () => Promise.reject(onlyData('a script')),
})
