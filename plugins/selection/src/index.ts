import { join } from 'node:path'
import { definePlugin, Host, schema, svcHome, systemUse } from '@svc/core'
import { Modes, Providers, Selection, Store, Tools } from '@svc/core/contracts'
import { checkBegin, warnOfNames } from './begin.ts'
import { readProfiles } from './profiles.ts'
import { createSelection } from './selection.ts'
import { openSession } from './state.ts'

export interface SelectionConfig {
  profile?: string
  mode?: string
  profiles_file?: string
}

export default definePlugin({
  section: 'selection',
  config: schema<SelectionConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      profile: { type: 'string', minLength: 1, description: 'Profile at start' },
      mode: { type: 'string', minLength: 1, description: 'Mode at start' },
      profiles_file: { type: 'string', minLength: 1, description: 'File of the profiles; default <svc home>/profiles.yaml' },
    },
  }),
  requires: { store: Store, host: Host, providers: Providers, modes: Modes, tools: Tools },
  provides: Selection,
  async setup(scope, { store, host, providers, modes, tools }) {
    const { profiles_file, ...begin } = scope.config
    const profiles = await readProfiles(profiles_file ?? join(svcHome(), 'profiles.yaml'))
    const lasting = systemUse(scope.signal, 'selection')
    const session = await openSession(store, (await host.report(lasting)).serverId, scope.log, lasting)
    scope.tap(Host.hooks.ready, () => {
      warnOfNames(profiles, providers, tools, scope.log)
      return checkBegin(begin, profiles, modes)
    })
    return createSelection({ profiles, session, providers, modes, begin })
  },
})
