import { createHmac, randomBytes } from 'node:crypto'
import { type CallContext, codeOf, type Events, type Log } from '@svc/core'
import type { Json, Secrets, Space, Store, StoreRecord } from '@svc/core/contracts'
import { publishChange } from '@svc/plugin-kit'
import { timelyId } from '@svc/storage-kit'
import { keyMissing, tooMany, webhookUnknown } from './errors.ts'

const COLLECTION = 'webhooks'
export const SPACE: Space = { name: 'webhooks', version: 1, collections: { [COLLECTION]: { watched: true } } }

/** What callers can set. */
export interface WebhookSettings {
  readonly name: string
  readonly url: string
  /** Types of events, as in `typeFilter`. Empty: all. */
  readonly types: readonly string[]
  readonly enabled: boolean
}

/** A webhook in the store. Its secret is derived from `nonce` and the signing key, so the store has no secret in clear. */
interface WebhookRecord extends WebhookSettings {
  readonly nonce: string
  /** The nonce before the last rotation, which still signs until then. */
  readonly former?: { readonly nonce: string; readonly until: number }
  /** Why svc has disabled it. */
  readonly disabledReason?: string
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
}

export interface Webhook extends WebhookRecord {
  readonly id: string
}

interface WebhooksOptions {
  readonly store: Store
  readonly secrets: Secrets
  readonly events: Events
  readonly log: Log
}

/** The secret from which the secrets of all webhooks are derived. */
const SIGNING_KEY = 'webhooks_signing_key'
const MOST = 100
const LEASE = 'webhooks.signing_key'
/** How long the former secret signs too after a rotation. */
const FORMER_MS = 24 * 3_600_000
const ID = /^[0-9a-f-]{36}$/

/** The webhooks in the store. */
export class Webhooks {
  readonly #options: WebhooksOptions

  constructor(options: WebhooksOptions) {
    this.#options = options
  }

  async all(ctx: CallContext): Promise<Webhook[]> {
    const { records } = await this.#options.store.range(COLLECTION, { limit: MOST }, ctx)
    return records.map(webhookOf)
  }

  /** Throws INVALID_VALUE, with the reason `not found`. */
  async get(id: string, ctx: CallContext): Promise<Webhook> {
    return webhookOf(await this.#found(id, ctx))
  }

  /** Yields after each change, of any worker. */
  async *changes(ctx: CallContext): AsyncGenerator<void> {
    for await (const _ of this.#options.store.watch(COLLECTION, ctx)) yield
  }

  /** Adds a webhook. Throws UNAVAILABLE without a key for secrets. */
  async add(settings: WebhookSettings, ctx: CallContext): Promise<{ readonly webhook: Webhook; readonly secret: string }> {
    const { store, events, log } = this.#options
    if ((await this.all(ctx)).length >= MOST) throw tooMany(MOST)
    const now = Date.now()
    const webhook: Webhook = { ...settings, id: timelyId(), nonce: makeNonce(), createdAt: now, updatedAt: now }
    const [secret = ''] = await this.secretsOf(webhook, ctx)
    await store.batch([put(webhook, 0)], {}, ctx)
    publishChange(events, log, { type: 'webhook_added', subject: subjectOf(webhook), after: audited(webhook) }, ctx)
    return { webhook, secret }
  }

  /** Changes settings, or makes a new secret with `rotate`; then the former one signs too for a day. */
  async change(
    id: string,
    { rotate = false, ...settings }: Partial<WebhookSettings> & { readonly rotate?: boolean },
    ctx: CallContext
  ): Promise<{ readonly webhook: Webhook; readonly secret?: string }> {
    const webhook = await this.#update(id, 'webhook_changed', ctx, before => {
      const { disabledReason, ...kept } = before
      const isKept = disabledReason !== undefined && settings.enabled !== true
      const now = Date.now()
      const former = { nonce: before.nonce, until: now + FORMER_MS }
      return {
        ...kept,
        ...settings,
        ...(isKept ? { disabledReason } : {}),
        ...(rotate ? { nonce: makeNonce(), former } : {}),
        updatedAt: now,
      }
    })
    const [secret] = rotate ? await this.secretsOf(webhook, ctx) : []
    return { webhook, ...(secret === undefined ? {} : { secret }) }
  }

  /** Disables a webhook whose receiver does not want deliveries any more. */
  async disable(id: string, disabledReason: string, ctx: CallContext): Promise<void> {
    const change = (before: Webhook): Webhook => ({ ...before, enabled: false, disabledReason, updatedAt: Date.now() })
    await this.#update(id, 'webhook_disabled', ctx, change)
  }

  async remove(id: string, ctx: CallContext): Promise<void> {
    const { store, events, log } = this.#options
    const webhook = webhookOf(await this.#found(id, ctx))
    await store.batch([{ op: 'delete', collection: COLLECTION, key: id }], {}, ctx)
    publishChange(events, log, { type: 'webhook_removed', subject: subjectOf(webhook), before: audited(webhook) }, ctx)
  }

  /** The secrets that sign its deliveries: the current one, and the former one for a day after a rotation. */
  async secretsOf({ id, nonce, former }: Webhook, ctx: CallContext): Promise<string[]> {
    const key = await this.#signingKey(ctx)
    const nonces = [nonce, ...(former && former.until > Date.now() ? [former.nonce] : [])]
    return nonces.map(one => `whsec_${createHmac('sha256', key).update(`${id}/${one}`).digest('base64')}`)
  }

  /** Creates it when the first webhook is added. */
  async #signingKey(ctx: CallContext): Promise<string> {
    const { secrets } = this.#options
    try {
      return (await secrets.read(SIGNING_KEY, ctx)).value
    } catch (error) {
      if (codeOf(error) !== 'SECRET_UNKNOWN') throw asKeyMissing(error)
    }
    return this.#makeSigningKey(ctx)
  }

  /** Two workers must not create different keys. */
  async #makeSigningKey(ctx: CallContext): Promise<string> {
    const { store, secrets } = this.#options
    const lease = await store.acquire(LEASE, { holder: `webhooks/${crypto.randomUUID()}`, ttlMs: 30_000, waitMs: 10_000 }, ctx)
    try {
      const existing = await secrets.read(SIGNING_KEY, ctx).catch((error: unknown) => {
        if (codeOf(error) !== 'SECRET_UNKNOWN') throw error
      })
      if (existing) return existing.value
      const key = randomBytes(32).toString('base64')
      await secrets.set(SIGNING_KEY, key, ctx)
      return key
    } catch (error) {
      throw asKeyMissing(error)
    } finally {
      await store.release({ lease: lease.lease, fence: lease.fence }, ctx)
    }
  }

  async #update(id: string, type: string, ctx: CallContext, change: (before: Webhook) => Webhook): Promise<Webhook> {
    const { store, events, log } = this.#options
    for (;;) {
      const found = await this.#found(id, ctx)
      const before = webhookOf(found)
      const after = change(before)
      try {
        await store.batch([put(after, found.version)], {}, ctx)
      } catch (error) {
        if (codeOf(error) === 'STORE_CONFLICT') continue
        throw error
      }
      publishChange(events, log, { type, subject: subjectOf(after), before: audited(before), after: audited(after) }, ctx)
      return after
    }
  }

  async #found(id: string, ctx: CallContext): Promise<StoreRecord> {
    const found = ID.test(id) ? await this.#options.store.get(COLLECTION, id, ctx) : undefined
    if (!found) throw webhookUnknown(id)
    return found
  }
}

const makeNonce = () => randomBytes(16).toString('base64url')

const put = ({ id, ...record }: Webhook, ifVersion: number) => ({
  op: 'put' as const,
  collection: COLLECTION,
  key: id,
  value: record as unknown as Json,
  ifVersion,
})

const webhookOf = ({ key, value }: StoreRecord): Webhook => ({ id: key, ...(value as unknown as WebhookRecord) })

const subjectOf = ({ id }: Webhook) => `webhooks/${id}`

/** The path of a URL can be a credential. A new nonce shows as a rotation. */
const audited = ({ name, url, types, enabled, disabledReason, nonce }: Webhook): { readonly [member: string]: Json } => ({
  name,
  origin: new URL(url).origin,
  types,
  enabled,
  disabled_reason: disabledReason ?? null,
  rotation: createHmac('sha256', nonce).digest('hex').slice(0, 8),
})

const asKeyMissing = (error: unknown) =>
  codeOf(error) === 'SECRETS_KEY_MISSING' || codeOf(error) === 'SECRET_UNREADABLE' ? keyMissing(error) : error
