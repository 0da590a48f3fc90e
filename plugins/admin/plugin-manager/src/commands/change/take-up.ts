import { StartFailed, type SvcError, systemContext } from '@svc/core'
import { findServers, type FoundServer, fromWire } from '@svc/runtime'
import { changeLock, isAbandoned, type Lock, type Revision } from '../../set.ts'
import { serverSilent } from '../errors.ts'
import { patiently } from './patience.ts'
import { clusterSetOf, keepRevision } from './cluster-set.ts'
import { problemsOf } from '@svc/cli/command'
import { startProblems } from '@svc/cli/program'

/** The result of a change: the problems, and the servers that serve with it. */
export interface ChangeResult {
  readonly problems: readonly SvcError[]
  readonly urls: readonly string[]
  /** Servers of `svc plugins dev`, which load no installed plugins. */
  readonly others: readonly string[]
  /** The revision of the cluster that the change has become. */
  readonly revision?: number
}

export interface TakingUp {
  /** The configuration of the trial start if no server runs. */
  readonly config?: string | undefined
  /** The lock before the change. */
  readonly before: Lock
  readonly signal: AbortSignal
  readonly report: (step: 'reload' | 'start' | 'wait') => void
  /** False: the change comes from the cluster. Otherwise it becomes a revision of the cluster. */
  readonly writes?: boolean
  /** The process id of the server that this change is for: it must load it. */
  readonly server?: number | undefined
}

/**
 * Puts a change in effect on trial, until all servers have loaded it. Restores the former plugins if a server cannot, or after
 * an interruption. If this process is killed, the former plugins start. In a cluster, writes the new plugins as its next
 * revision; throws PLUGIN_SET_BEHIND, PLUGIN_SET_CONFLICT, PLUGIN_SET_TOO_LARGE, and the errors of the store.
 */
export async function tryChange(
  home: string,
  taking: TakingUp,
  put: (holds: () => Promise<boolean>) => Promise<unknown>
): Promise<ChangeResult> {
  let taken: ChangeResult = { problems: [], urls: [], others: [] }
  let revision: Revision | undefined
  const isGood = () => taken.problems.length === 0 && (revision !== undefined || !taking.signal.aborted)
  await using cluster = taking.writes === false ? undefined : await clusterSetOf(taking.config, taking.signal)
  const base = await cluster?.begin()
  try {
    const holds = async () => {
      taken = await takeUp(home, taking)
      // the last step: what the cluster has, this node has tried
      if (isGood() && cluster) revision = await cluster.write(base!)
      return isGood()
    }
    await patiently(() => put(holds), taking)
  } finally {
    if (taken.urls.length > 0 && (cluster === undefined ? !isGood() : revision === undefined)) await takeBack(home)
  }
  if (revision) await keepRevision(revision)
  return { ...taken, ...(revision ? { revision: revision.revision } : {}) }
}

/**
 * Cleans up a change whose process was killed during its trial. A server that already serves with it reloads first, because the
 * next change deletes its files.
 */
export async function settleAbandoned(set: string, home: string): Promise<void> {
  if (!(await isAbandoned(set))) return
  await changeLock(set, lock => lock)
  await takeBack(home)
}

/**
 * Reloads every server of the home with the installed plugins; without a server, starts a host once. Stops at the first
 * failure.
 */
async function takeUp(home: string, taking: TakingUp): Promise<ChangeResult> {
  using stack = new DisposableStack()
  const all = (await findServers(home)).map(server => stack.use(server))
  const servers = all.filter(loadsInstalled)
  const others = all.filter(server => !loadsInstalled(server)).map(({ info }) => info.url)
  if (taking.server !== undefined && !all.some(({ info }) => info.pid === taking.server)) throw serverSilent()
  if (servers.length > 0) {
    taking.report('reload')
    return { ...(await reloadAll(servers)), others }
  }
  taking.report('start')
  return { problems: await newProblems(taking), urls: [], others }
}

/** Reloads the servers that had already loaded the change, after its rollback. */
async function takeBack(home: string): Promise<void> {
  using stack = new DisposableStack()
  await reloadAll((await findServers(home)).map(server => stack.use(server)).filter(loadsInstalled))
}

/** Whether a server loads the installed plugins: that of `svc plugins dev` does not. */
export const loadsInstalled = ({ info }: FoundServer) => info.linked === undefined

/** An interruption does not stop it: servers with different sets would be worse than waiting. */
async function reloadAll(servers: readonly FoundServer[]): Promise<Pick<ChangeResult, 'problems' | 'urls'>> {
  const urls: string[] = []
  for (const { control, info } of servers) {
    const problems = await reloaded(control)
    if (problems.length > 0) return { problems, urls }
    urls.push(info.url)
  }
  return { problems: [], urls }
}

/** A server that ends meanwhile has not loaded the change. */
async function reloaded(control: FoundServer['control']): Promise<SvcError[]> {
  try {
    return (await control.reload(systemContext(new AbortController().signal, 'svc plugins'))).problems.map(fromWire)
  } catch (error) {
    return problemsOf(error)
  }
}

/** Ignores problems that existed before: the plugins do not cause them. */
async function newProblems({ config, before, signal }: TakingUp): Promise<SvcError[]> {
  const now = await startProblems({ config }, signal)
  if (now.length === 0) return []
  const then = new Set((await startProblems({ config, installed: before }, signal)).map(textOf))
  return now.filter(problem => !then.has(textOf(problem)))
}

const textOf = ({ code, plugin, message }: SvcError) => JSON.stringify([code, plugin, message])

/** The error of a change that was rolled back. */
export const refusedText = (problems: readonly SvcError[]): StartFailed => new StartFailed(problems)
