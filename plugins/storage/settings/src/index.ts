import { definePlugin, schema, systemContext } from '@svc/core'
import { SettingDefinitions, Settings, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { createSettings, SPACE } from './settings.ts'

const CONFIG = schema<{ readonly max_bytes: number }>({
  type: 'object',
  additionalProperties: false,
  properties: {
    max_bytes: {
      type: 'integer',
      minimum: 256,
      maximum: 1_048_576,
      default: 16_384,
      description: 'Maximum bytes of JSON of the values of one owner and one plugin.',
    },
  },
})

/** Keeps settings of plugins per principal and team. */
export default definePlugin({
  section: 'settings',
  config: CONFIG,
  requires: { store: Store, definitions: SettingDefinitions },
  provides: Settings,
  async setup(scope, { store, definitions }) {
    await openSpace(store, SPACE, {}, systemContext(scope.signal, 'settings'))
    return createSettings({ store, definitions, maxBytes: scope.config.max_bytes })
  },
})
