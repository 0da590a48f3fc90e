import { type CallContext, codeOf, type Log, registerSecret, SECRET_NAME } from '@svc/core'
import type { Secret, SecretInfo, Secrets, Store } from '@svc/core/contracts'
import type { SecretsConfig } from './config.ts'
import { nameInvalid, secretConfigured, secretUnknown, valueInvalid } from './errors.ts'
import type { SealingKeys } from './key.ts'
import { all, COLLECTION, find, put, putRemoved, type StoredSecret } from './records.ts'
import { seal, unseal } from './seal.ts'
import { infoOf, MAX_VALUE_BYTES, readSource, type SourceReader, sourceWords } from './sources.ts'

export interface SecretsOptions {
  readonly store: Store
  readonly config: SecretsConfig
  readonly env: SourceReader['env']
  /** Reads the keys again at each call, so that a new key in the file takes effect at once. */
  readonly keys: () => SealingKeys
  readonly log: Pick<Log, 'warn'>
}

/** Creates the service. The space of the store must be open. */
export function createSecrets(options: SecretsOptions): Secrets {
  const { store, config, keys } = options
  const sourceOf = (name: string) => (Object.hasOwn(config.sources, name) ? config.sources[name] : undefined)
  const refuseConfigured = (name: string) => {
    const source = sourceOf(checkedName(name))
    if (source) throw secretConfigured(name, sourceWords(source))
  }
  return {
    async read(name, ctx) {
      const source = sourceOf(checkedName(name))
      if (source) return readSource(name, source, options)
      const { record } = await find(store, name, ctx)
      if (!record) throw secretUnknown(name)
      return { value: unseal(name, record, keys()), version: String(record.revision) }
    },
    async *changes(name, ctx) {
      checkedName(name)
      let last = (await find(store, name, ctx)).record?.revision
      for await (const { key } of store.watch(COLLECTION, ctx)) {
        const next = key === name ? (await find(store, name, ctx)).record?.revision : last
        // a new key for the same value is no change
        if (next === last) continue
        last = next
        yield { version: String(next ?? 0) }
      }
    },
    async list(ctx) {
      const sealed = (await all(store, ctx)).filter(({ name }) => !sourceOf(name))
      const configured = Object.entries(config.sources).map(([name, source]) => infoOf(name, source, options))
      return [...configured, ...sealed.map(item => sealedInfo(item, keys))].sort((a, b) => (a.name < b.name ? -1 : 1))
    },
    async set(name, value, ctx) {
      refuseConfigured(name)
      checkValue(value)
      return untilStored(() => setSealed(options, name, value, ctx))
    },
    async remove(name, ctx) {
      refuseConfigured(name)
      await untilStored(async () => {
        const { record, version } = await find(store, name, ctx)
        if (!record) throw secretUnknown(name)
        await store.batch([putRemoved(name, version)], {}, ctx)
      })
    },
    reseal: ctx => untilStored(() => reseal(store, keys(), ctx)),
  }
}

/** Attempts of a change while others change the same record. */
const TRIES = 5

async function untilStored<T>(change: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await change()
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT' || left <= 1) throw error
    }
  }
}

async function setSealed({ store, keys }: SecretsOptions, name: string, value: string, ctx: CallContext): Promise<SecretInfo> {
  const { record: before, version } = await find(store, name, ctx)
  const at = Date.now()
  // a secret that is created again does not reuse the revision of the removed one
  const revision = Math.max(before?.revision ?? 0, version) + 1
  const record = { ...seal(name, value, keys()[0]), created_at: before?.created_at ?? at, changed_at: at, revision }
  await store.batch([put(name, record, version)], {}, ctx)
  return sealedInfo({ name, version: version + 1, record }, keys)
}

/** Seals all records with the first key, all or none: an unreadable one fails the whole. */
async function reseal(store: Store, keys: SealingKeys, ctx: CallContext) {
  const old = (await all(store, ctx)).filter(({ record }) => record.key_id !== keys[0].id)
  const ops = old.map(({ name, version, record }) =>
    put(name, { ...record, ...seal(name, unseal(name, record, keys), keys[0]) }, version)
  )
  if (ops.length > 0) await store.batch(ops, {}, ctx)
  return { resealed: ops.length, keyId: keys[0].id }
}

function checkedName(name: unknown): string {
  if (typeof name !== 'string' || !SECRET_NAME.test(name)) throw nameInvalid(name)
  return name
}

function checkValue(value: unknown): void {
  if (typeof value !== 'string') throw valueInvalid('is not text', 'Encode bytes as Base64')
  if (value === '') throw valueInvalid('is empty', 'Remove the secret instead: svc secrets remove')
  if (!value.isWellFormed()) throw valueInvalid('is not well-formed Unicode', 'Encode bytes as Base64')
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES)
    throw valueInvalid(`has ${bytes} bytes`, `Shorten it to ${MAX_VALUE_BYTES} bytes, or keep it in a file and store the path`)
}

function sealedInfo({ name, record }: StoredSecret, keys: () => SealingKeys): SecretInfo {
  const { created_at: createdAt, changed_at: changedAt, key_id: keyId } = record
  return { name, source: 'sealed', state: stateOf(name, record, keys), createdAt, changedAt, keyId }
}

function stateOf(name: string, record: StoredSecret['record'], keys: () => SealingKeys): SecretInfo['state'] {
  try {
    unseal(name, record, keys())
    return 'ready'
  } catch (error) {
    return codeOf(error) === 'SECRET_UNREADABLE' ? 'unreadable' : 'no_key'
  }
}

/**
 * Keeps the values of all secrets out of the output of this process, from now on until the signal aborts. A value that cannot be
 * read is skipped: no plugin has it either.
 */
export async function redactAll(secrets: Secrets, store: Store, log: Pick<Log, 'warn'>, ctx: CallContext): Promise<void> {
  const ends = new Map<string, () => void>()
  const register = async (name: string) => {
    const secret: Secret | undefined = await secrets.read(name, ctx).catch(() => undefined)
    if (!secret) return
    // A replaced value stays registered: a plugin can still hold it.
    const key = `${name}\0${secret.version}`
    if (!ends.has(key)) ends.set(key, registerSecret(secret.value))
  }
  ctx.signal.addEventListener('abort', () => ends.forEach(end => end()), { once: true })
  for (const { name } of await secrets.list(ctx)) await register(name)
  const follow = async () => {
    for await (const { key } of store.watch(COLLECTION, ctx)) await register(key)
  }
  follow().catch((err: unknown) => {
    if (!ctx.signal.aborted) log.warn({ err }, 'stopped following changes of secrets; new values are not redacted until a reload')
  })
}
