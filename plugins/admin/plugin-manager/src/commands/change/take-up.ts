import { StartFailed, type SvcError, systemContext } from '@svc/core'
import { findServers, type FoundServer, fromWire } from '@svc/runtime'
import { changeLock, isAbandoned, type Lock } from '../../set.ts'
import { problemsOf } from '@svc/cli/command'
import { startProblems } from '@svc/cli/program'

/** What came of it: why it cannot be served with what is installed now, and which servers serve with it. */
export interface TakenUp {
  readonly problems: readonly SvcError[]
  readonly urls: readonly string[]
}

export interface TakingUp {
  /** The configuration that is tried where no server runs. */
  readonly config?: string | undefined
  /** What was in force before. */
  readonly before: Lock
  readonly signal: AbortSignal
  readonly tell: (step: 'reload' | 'start') => void
}

/**
 * Lets `put` put a change in force, on trial until servers have taken it up; what was in force before serves again where one cannot, or the person has interrupted it.
 * Killed on the way, what was before is what starts.
 */
export async function tryChange(
  home: string,
  taking: TakingUp,
  put: (holds: () => Promise<boolean>) => Promise<unknown>
): Promise<TakenUp> {
  let taken: TakenUp = { problems: [], urls: [] }
  const isGood = () => taken.problems.length === 0 && !taking.signal.aborted
  await put(async () => {
    taken = await takeUp(home, taking)
    return isGood()
  })
  if (!isGood() && taken.urls.length > 0) await takeBack(home)
  return taken
}

/**
 * Takes away what a change has left whose process was killed while it was on trial. A server may serve with it already: that goes back first, since the next change removes
 * its files.
 */
export async function settleAbandoned(set: string, home: string): Promise<void> {
  if (!(await isAbandoned(set))) return
  await changeLock(set, lock => lock)
  await takeBack(home)
}

/** Lets every server of the home take up what is installed now; where none runs, a host is started with it once. Stops at the first one that cannot. */
async function takeUp(home: string, taking: TakingUp): Promise<TakenUp> {
  using stack = new DisposableStack()
  const servers = (await findServers(home)).map(server => stack.use(server))
  if (servers.length > 0) {
    taking.tell('reload')
    return await reloadAll(servers)
  }
  taking.tell('start')
  return { problems: await newProblems(taking), urls: [] }
}

/** After the way back: what was in force before serves again where the new set had been taken up. */
async function takeBack(home: string): Promise<void> {
  using stack = new DisposableStack()
  await reloadAll((await findServers(home)).map(server => stack.use(server)))
}

/** An interruption does not end it: half of the servers with another set than the others would be worse than waiting. */
async function reloadAll(servers: readonly FoundServer[]): Promise<TakenUp> {
  const urls: string[] = []
  for (const { control, info } of servers) {
    const problems = await reloaded(control)
    if (problems.length > 0) return { problems, urls }
    urls.push(info.url)
  }
  return { problems: [], urls }
}

/** A server that ends meanwhile has not taken anything up. */
async function reloaded(control: FoundServer['control']): Promise<SvcError[]> {
  try {
    return (await control.reload(systemContext(new AbortController().signal, 'svc plugins'))).problems.map(fromWire)
  } catch (error) {
    return problemsOf(error)
  }
}

/** What was wrong before as well is nothing that the plugins are to be blamed for. */
async function newProblems({ config, before, signal }: TakingUp): Promise<SvcError[]> {
  const now = await startProblems({ config }, signal)
  if (now.length === 0) return []
  const then = new Set((await startProblems({ config, installed: before }, signal)).map(textOf))
  return now.filter(problem => !then.has(textOf(problem)))
}

const textOf = ({ code, plugin, message }: SvcError) => JSON.stringify([code, plugin, message])

/** The page for a change that was taken back. */
export const refusedText = (problems: readonly SvcError[]): StartFailed => new StartFailed(problems)
