import { definePlugin, registerSecret, systemContext } from '@svc/core'
import { Checks, Secrets, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { CONFIG } from './config.ts'
import { KEY_VARIABLE, readKeys } from './key.ts'
import { SPACE } from './records.ts'
import { createSecrets, redactAll } from './secrets.ts'
import { createCheck } from './sources.ts'

/** Keeps secrets: from variables and files that the configuration names, and sealed in the store. */
export default definePlugin({
  section: 'secrets',
  config: CONFIG,
  requires: { store: Store },
  provides: Secrets,
  async setup(scope, { store }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'secrets')
    const { env } = process
    await openSpace(store, SPACE, {}, lasting)
    const secrets = createSecrets({ store, config, env, log, keys: () => readKeys({ file: config.key_file, env }) })
    if (env[KEY_VARIABLE]) scope.defer(registerSecret(env[KEY_VARIABLE]))
    await redactAll(secrets, store, log, lasting)
    const check = createCheck(secrets, { ...config, env, log })
    const isUsed = config.key_file !== undefined || Object.keys(config.sources).length > 0 || env[KEY_VARIABLE] !== undefined
    if (isUsed) scope.add(Checks, 'secrets', check)
    const { status, reason } = await check.probe(lasting)
    if (status !== 'healthy') log.warn({ reason }, 'not all secrets can be read, or a file of a secret is public')
    return secrets
  },
})
