import type { Runtime } from '@svc/core'
import { onlyData } from './errors.ts'
import { itemsOf } from './vertical-file.ts'

/** Makes the runtime "vertical": it reads a plugin's file, and runs nothing. */
export const createRuntime = (): Runtime => ({
  open: ({ plugin, code }) => itemsOf(plugin, code),
  call: ({ plugin }) => Promise.reject(onlyData(plugin)),
  run: () => Promise.reject(onlyData('a script')),
})
