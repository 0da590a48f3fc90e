import { resolve } from 'node:path'
import { definePlugin, Events, Host, schema, systemContext } from '@svc/core'
import { ModelAliases, Modes, Peers, ProfileFile, ProtectedPaths, Providers, Selection, Store, Tools } from '@svc/core/contracts'
import { createProfileFile, hasProfile } from './profile-file.ts'
import { checkBegin, checkProfiles, profilesPlace, readProfiles, warnOfNames } from './profiles.ts'
import { CHANGED, changeOf, createSelection, openSession, reportSwitch, type ServerSelection } from './selection.ts'

export type SelectionConfig = { profile?: string; mode?: string; profiles_file?: string }

export default definePlugin({
  section: 'selection',
  config: schema<SelectionConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      profile: { type: 'string', minLength: 1, description: 'Profile at start' },
      mode: { type: 'string', minLength: 1, description: 'Mode at start' },
      profiles_file: { type: 'string', minLength: 1, description: 'Profiles file; default <svc home>/profiles.yaml' },
    },
  }),
  check: config => checkProfiles(profilesPlace(config), config.profile),
  requires: { store: Store, host: Host, events: Events, providers: Providers, aliases: ModelAliases, modes: Modes, tools: Tools },
  optional: { peers: Peers },
  provides: Selection,
  alsoProvides: [ProfileFile],
  async setup(scope, { host, events, providers, aliases, modes, tools, ...shared }) {
    const { profiles_file: _file, ...begin } = scope.config
    const profiles = await readProfiles(profilesPlace(scope.config))
    scope.add(ProtectedPaths, 'profiles', {
      paths: [resolve(profilesPlace(scope.config).file)],
      owner: 'the profiles of this server',
    })
    const lasting = systemContext(scope.signal, 'selection')
    const { clusterId: key } = await host.report(lasting)
    const changed = async (state: Pick<ServerSelection, 'now'>) => {
      await scope.hooks.changed(changeOf({ profiles, session: state, begin }), lasting)
    }
    const session = await openSession({ ...shared, key, changed, log: scope.log }, lasting)
    scope.tap(Peers.hooks.message, ({ topic }, ctx) => (topic === CHANGED ? session.read(ctx) : undefined))
    scope.tap(Peers.hooks.missed, (_, ctx) => session.read(ctx))
    scope.tap(Host.hooks.ready, () => {
      warnOfNames(profiles, providers, tools, scope.log)
      return checkBegin(begin, profiles, modes)
    })
    const place = profilesPlace(scope.config)
    const file = createProfileFile({ place, profiles, begin: begin.profile, modes, providers, tools })
    const selection = createSelection({
      profiles,
      isInFile: (name, ctx) => hasProfile(file, name, ctx),
      session,
      sources: { providers, aliases },
      modes,
      begin,
      switched: reportSwitch(events, scope.log),
    })
    return { ...selection, ...file }
  },
})
