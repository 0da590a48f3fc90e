import type { CallContext, Events, HostReport, Log, PluginReport } from '@svc/core'
import {
  type Json,
  PluginDisabled,
  PluginEnabled,
  PluginFailed,
  PluginInstalled,
  PluginRemoved,
  type Store,
  PluginUpdated,
} from '@svc/core/contracts'
import { changeRecord } from '@svc/storage-kit/records'
import type { LockedPlugin } from './set/lock.ts'

/** What servers of each home have loaded last. */
const COLLECTION = 'plugin_sets'

/** The set that a server of this home has loaded last. */
interface LoadedSet {
  readonly plugins: { readonly [name: string]: { readonly version: string; readonly enabled: boolean } }
  /** Optional plugins that failed: name, or name and instance, with the code. */
  readonly failed: { readonly [name: string]: string }
}

interface SetEventsOptions {
  readonly store: Store
  readonly events: Events
  readonly log: Log
}

/**
 * Publishes what differs between the set that this worker has loaded and the one before. Workers of one generation find the same:
 * the first that stores the new set publishes.
 */
export async function publishDifference(
  { store, events, log }: SetEventsOptions,
  report: Pick<HostReport, 'nodeId' | 'plugins'>,
  installed: readonly LockedPlugin[],
  ctx: CallContext
): Promise<void> {
  const now = loadedSet(report.plugins, installed)
  let before: LoadedSet | undefined
  let isFirst = false
  await changeRecord(
    store,
    { collection: COLLECTION, key: report.nodeId },
    ({ value }) => {
      before = value as unknown as LoadedSet | undefined
      isFirst = JSON.stringify(before) !== JSON.stringify(now)
      return isFirst ? (now as unknown as Json) : undefined
    },
    ctx
  )
  if (!isFirst) return
  try {
    if (before) await publishChanges(events, before, now, ctx)
    await publishFailures(events, before?.failed ?? {}, report.plugins, ctx)
  } catch (err) {
    log.warn({ err }, 'failed to publish a change of the plugins')
  }
}

function loadedSet(reports: readonly PluginReport[], installed: readonly LockedPlugin[]): LoadedSet {
  const failed = reports.filter(({ state }) => state === 'failed')
  return {
    plugins: Object.fromEntries(installed.map(({ name, version, enabled }) => [name, { version, enabled }])),
    failed: Object.fromEntries(failed.map(report => [labelOf(report), report.error?.code ?? ''])),
  }
}

const labelOf = ({ name, instance }: PluginReport) => (instance === undefined ? name : `${name} (${instance})`)

async function publishChanges(events: Events, before: LoadedSet, now: LoadedSet, ctx: CallContext): Promise<void> {
  for (const [plugin, { version, enabled }] of Object.entries(now.plugins)) {
    const old = before.plugins[plugin]
    const data = { plugin, version, from_version: null }
    if (old === undefined) await events.publish(PluginInstalled, data, ctx)
    else if (old.version !== version) await events.publish(PluginUpdated, { ...data, from_version: old.version }, ctx)
    if (old !== undefined && old.enabled !== enabled) await events.publish(enabled ? PluginEnabled : PluginDisabled, data, ctx)
  }
  for (const [plugin, { version }] of Object.entries(before.plugins))
    if (now.plugins[plugin] === undefined) await events.publish(PluginRemoved, { plugin, version, from_version: null }, ctx)
}

async function publishFailures(
  events: Events,
  before: LoadedSet['failed'],
  reports: readonly PluginReport[],
  ctx: CallContext
): Promise<void> {
  for (const report of reports) {
    if (report.state !== 'failed' || before[labelOf(report)] !== undefined) continue
    const { name: plugin, instance = null, error } = report
    await events.publish(PluginFailed, { plugin, instance, error_code: error?.code ?? '' }, ctx)
  }
}
