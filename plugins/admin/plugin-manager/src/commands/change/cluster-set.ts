import { readFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { findSettings, isPostgresUrl, OURS, PACKAGE_FOLDER, setHome } from '@svc/cli/program'
import { type CallContext, type Config, get, type LogOptions, startHost, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import {
  hasRevision,
  needsSet,
  newestRevision,
  packLock,
  readNodeRevision,
  type Revision,
  REVISION_SPACE,
  type RevisionStore,
  revisionBehind,
  triedLock,
  writeNodeRevision,
  writeRevision,
} from '../../set.ts'
import { withTransferFile } from './transfer-file.ts'

// Changes of the plugins on a node of a cluster: the accepted set becomes a revision in the store, which all nodes take over.

const STORE = '@svc/plugin-store-postgres'

/** The plugins of the cluster of this home, for a command or a job that changes them. */
export interface ClusterSet extends AsyncDisposable {
  readonly revisions: RevisionStore
  readonly ctx: CallContext
  /** The newest revision, which this node has. Throws PLUGIN_SET_BEHIND. */
  begin(): Promise<number>
  /** Writes the lock on trial as the revision after `base`. Throws as `writeRevision`. */
  write(base: number): Promise<Revision>
}

/** `log` gets the lines of the store. Undefined without PostgreSQL, and in a build, whose plugins do not change. Throws START_FAILED if the store cannot be reached. */
export async function openClusterSet(
  { value, plugins }: Pick<Config, 'value' | 'plugins'>,
  signal: AbortSignal,
  log?: LogOptions
): Promise<ClusterSet | undefined> {
  const isShared = isPostgresUrl(get(value, ['store', 'url'])) && plugins.some(({ use }) => use === STORE)
  if (!isShared || process.env.SVC_PLUGINS) return undefined
  const [store, cluster] = [get(value, ['store']) as Config['value'], get(value, ['cluster', 'name'])]
  const host = await startHost({ plugins: [STORE], from: [OURS], config: { store }, signal, ...(log ? { log } : {}) })
  const revisions = { store: host.service(Store), cluster: String(cluster) }
  const clusterSet = createClusterSet(revisions, systemContext(signal, 'svc plugins'), () => host.close())
  try {
    await openSpace(revisions.store, REVISION_SPACE, {}, clusterSet.ctx)
  } catch (error) {
    await host.close()
    throw error
  }
  return clusterSet
}

/** As `openClusterSet`, with the configuration of a command. A configuration that cannot be read names no cluster. */
export async function clusterSetOf(config: string | undefined, signal: AbortSignal): Promise<ClusterSet | undefined> {
  const found = await findSettings(config === undefined ? {} : { config }).catch(() => undefined)
  return found && openClusterSet(found, signal)
}

/** Throws PLUGIN_SET_BEHIND if the cluster has a newer revision than this node. */
export async function checkRevision(config: string | undefined, signal: AbortSignal): Promise<void> {
  await using clusterSet = await clusterSetOf(config, signal)
  await clusterSet?.begin()
}

function createClusterSet(revisions: RevisionStore, ctx: CallContext, close: () => Promise<void>): ClusterSet {
  const home = setHome()
  return {
    revisions,
    ctx,
    async begin() {
      const newest = await newestRevision(revisions, ctx)
      const own = readNodeRevision(home)
      if (newest && !hasRevision(own, newest)) throw revisionBehind(own.revision, newest)
      return newest?.revision ?? 0
    },
    write: base =>
      withTransferFile(home, async file => {
        const lock = triedLock(home)
        // a link stays on its machine
        const plugins = lock.plugins.filter(needsSet)
        if (plugins.length > 0) await packLock(home, { ...lock, plugins }, file, { signal: ctx.signal })
        const names = plugins.map(({ name, version }) => `${name} ${version}`)
        const facts = {
          plugins: names,
          by: writerName(),
          at: new Date().toISOString(),
          version: ownVersion(),
          platform: PLATFORM,
        }
        return writeRevision(revisions, { base, file: plugins.length > 0 ? file : undefined, facts }, ctx)
      }),
    [Symbol.asyncDispose]: close,
  }
}

/** Keeps which revision this node has, after its change is in effect. */
export const keepRevision = ({ revision, sha256 }: Revision): Promise<void> => writeNodeRevision(setHome(), { revision, sha256 })

export const PLATFORM = `${process.platform}-${process.arch}`

function writerName(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return hostname() // a user without a name, as in some containers
  }
}

const ownVersion = () => (JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { version: string }).version
