import { definePlugin } from '@svc/core'
import { Modes } from '@svc/core/contracts'
import { MODES } from './modes.ts'

export default definePlugin({
  setup(scope) {
    for (const [name, mode] of Object.entries(MODES)) scope.add(Modes, name, mode)
  },
})
