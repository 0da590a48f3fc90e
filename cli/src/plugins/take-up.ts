import { planHost, StartFailed, type SvcError, systemUse } from '@svc/core'
import { findServers, type FoundServer, fromWire } from '@svc/core/processes'
import type { Lock } from '@svc/plugin-set'
import { hostOptions } from '../host-options.ts'
import { problemsOf } from '../report-error.ts'
import { findSettings, here } from '../settings.ts'

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
  readonly tell: (step: 'reload' | 'plan') => void
}

/** Lets every server of the home take up what is installed now; where none runs, tries the configuration with it. Stops at the first one that cannot. */
export async function takeUp(home: string, taking: TakingUp): Promise<TakenUp> {
  using stack = new DisposableStack()
  const servers = (await findServers(home)).map(server => stack.use(server))
  if (servers.length > 0) {
    taking.tell('reload')
    return await reloadAll(servers)
  }
  taking.tell('plan')
  return { problems: await newProblems(taking), urls: [] }
}

/** After the way back: what was in force before serves again where the new set had been taken up. */
export async function takeBack(home: string): Promise<void> {
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
    return (await control.reload(systemUse(new AbortController().signal, 'svc plugins'))).problems.map(fromWire)
  } catch (error) {
    return problemsOf(error)
  }
}

/** What was wrong before as well is nothing that the plugins are to be blamed for. */
async function newProblems({ config, before }: TakingUp): Promise<SvcError[]> {
  const now = await planned(config)
  if (now.length === 0) return []
  const then = new Set((await planned(config, before)).map(textOf))
  return now.filter(problem => !then.has(textOf(problem)))
}

const textOf = ({ code, plugin, message }: SvcError) => JSON.stringify([code, plugin, message])

async function planned(config: string | undefined, installed?: Lock): Promise<SvcError[]> {
  const place = { ...here(), ...(installed ? { installed } : {}) }
  try {
    const settings = await findSettings(config === undefined ? {} : { config }, place)
    return [...(await planHost(hostOptions(settings, place.home))).problems]
  } catch (error) {
    return problemsOf(error)
  }
}

/** The page for a change that was taken back. */
export const refusedText = (problems: readonly SvcError[]): StartFailed => new StartFailed(problems)
