import { randomUUID } from 'node:crypto'
import { asSvcError, codeOf, messageOf, type CallContext } from '@svc/core'
import type { Fence, Space, Store, StoreOp } from '@svc/core/contracts'
import { migrationFailed, migrationMissing } from './errors.ts'
import { keepLease } from './lease-hold.ts'

/** The context of a migration; every batch that it writes carries `fence`. `ctx` aborts when its lease is lost. */
export interface MigrationContext {
  readonly store: Store
  readonly fence: Fence
  readonly ctx: CallContext
}

/**
 * Migrates data from version n to n + 1. Its returned operations are written together with the new version, so a small
 * migration is all or nothing. A larger one writes its own batches and must be able to restart after an interruption.
 */
export type Migration = (context: MigrationContext) => Promise<readonly StoreOp[] | undefined>

/** The migrations of a space by their start version. */
export type Migrations = { readonly [fromVersion: number]: Migration }

/** Time until the lease of a dead migration expires, and how long others wait for it. */
const TTL_MS = 30_000
const WAIT_MS = 10 * 60_000

/**
 * Opens a plugin's space and migrates its data to the declared version, step by step under a lease: one process migrates,
 * others wait. Throws STORE_NEWER, MIGRATION_MISSING, MIGRATION_FAILED. `await openSpace(store, { name: 'notes', version: 2,
 * collections: { notes: {} } }, { 1: async () => [] }, ctx)`
 */
export async function openSpace(store: Store, space: Space, migrations: Migrations, ctx: CallContext): Promise<void> {
  if (!isBehind(await store.open(space, ctx), space)) return
  const request = { holder: `migrate:${randomUUID()}`, ttlMs: TTL_MS, waitMs: WAIT_MS }
  await using kept = await keepLease(store, `migrate:${space.name}`, request, ctx)
  await migrate(space, migrations, { store, fence: kept.fence, ctx: kept.ctx })
}

const isBehind = (stored: { readonly version: number }, space: Space) => stored.version !== 0 && stored.version < space.version

async function migrate(space: Space, migrations: Migrations, context: MigrationContext): Promise<void> {
  // Asks again under the lease: another process may have migrated meanwhile.
  let { version } = await context.store.open(space, context.ctx)
  for (; version !== 0 && version < space.version; version++) {
    const step = Object.hasOwn(migrations, version) ? migrations[version] : undefined
    if (!step) throw migrationMissing(space.name, version)
    await take(step, space.name, version, context)
  }
}

async function take(step: Migration, space: string, version: number, context: MigrationContext): Promise<void> {
  try {
    const last = (await step(context)) ?? []
    await context.store.batch([...last, { op: 'migrated', space, version: version + 1 }], { fence: context.fence }, context.ctx)
  } catch (error) {
    if (context.ctx.signal.aborted || codeOf(error)?.startsWith('STORE_')) throw error
    throw migrationFailed(space, version, asSvcError(error, 'MIGRATION_FAILED', { hint: messageOf(error) }))
  }
}
