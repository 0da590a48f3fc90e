import { findSettings, here, servedFile } from '@svc/cli/program'
import { type Config, type ConfigTree, systemContext } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { findServers, type FoundServer } from '@svc/runtime'
import type { LockedPlugin } from '../../set.ts'
import { SETTINGS_TOPIC } from '../../plugin-set.ts'
import {
  type ConfiguredAccess,
  findSettingsOf,
  type FoundSettings,
  joinedAccess,
  type SettingsRequest,
} from './configured-access.ts'
import { loadsInstalled } from './take-up.ts'
import { settingsMissing, settingsMissingOnServer } from '../errors.ts'

// A command can run in another folder, or with other variables, than the server that loads its change. So the server says which
// settings and variables it would load the change with.

/** What a server would load plugins with. */
interface SettingsAnswer {
  /** The folder in which the server looks for its configuration. */
  readonly folder: string
  /** The configuration files that it reads. */
  readonly files: readonly string[]
  /** In the order of the request. */
  readonly found: readonly FoundSettings[]
}

interface ServerSettings extends SettingsAnswer {
  readonly url: string
}

/** Answers a command, in a worker of the server. It reads the configuration as the next reload does. */
export async function answerSettings(message: Json): Promise<SettingsAnswer> {
  // the cast is safe: only `askServer`, in a command of the same user, sends it
  const requests = message as unknown as readonly SettingsRequest[]
  const file = servedFile()
  const config = await findSettings(file === undefined ? {} : { config: file })
  return {
    folder: process.cwd(),
    files: filesOf(config),
    found: requests.map(request => findSettingsOf(request, config.value)),
  }
}

const ASK_MS = 20_000

/** The servers of this home that load installed plugins. */
export interface AskedServers {
  readonly answers: readonly ServerSettings[]
  /** How many did not answer: an older version of svc, or no worker that serves. */
  readonly silent: number
}

/** Asks all servers of this home that would load a change. */
export async function askServers(requests: readonly SettingsRequest[], signal: AbortSignal): Promise<AskedServers> {
  if (requests.length === 0) return { answers: [], silent: 0 }
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server)).filter(loadsInstalled)
  const answers = await Promise.all(servers.map(server => askServer(server, requests, signal).catch(() => undefined)))
  signal.throwIfAborted()
  const given = answers.filter(answer => answer !== undefined)
  return { answers: given, silent: answers.length - given.length }
}

async function askServer(
  { control, info }: FoundServer,
  requests: readonly SettingsRequest[],
  signal: AbortSignal
): Promise<ServerSettings | undefined> {
  const asked = requests.map(({ permissions, manifest }) => ({ permissions, manifest }))
  const ctx = systemContext(AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]), 'svc plugins')
  // the cast is safe: only `answerSettings`, in a server of this home, writes it
  for await (const answer of control.ask(SETTINGS_TOPIC, asked as unknown as Json, ctx))
    return { ...(answer as SettingsAnswer), url: info.url }
  return undefined
}

/**
 * The access that plugins would have: with the settings of the servers that run, or with those of `config` if none answers.
 * `isNamed`: the person has named the configuration, so its values are the ones to accept. Settings and variables that are
 * missing are always those of the servers.
 */
export function accessWith(
  { answers }: AskedServers,
  {
    requests,
    config,
    isNamed,
  }: { readonly requests: readonly SettingsRequest[]; readonly config: ConfigTree; readonly isNamed: boolean }
): (request: SettingsRequest, former?: LockedPlugin) => ConfiguredAccess {
  return (request, former) => {
    const own = () => joinedAccess([findSettingsOf(request, config)], former)
    const at = requests.indexOf(request)
    if (answers.length === 0) return own()
    const theirs = joinedAccess(
      answers.flatMap(({ found }) => found[at] ?? []),
      former
    )
    return isNamed ? { ...own(), missing: theirs.missing, unset: theirs.unset } : theirs
  }
}

interface OwnSettings {
  readonly requests: readonly (SettingsRequest & { readonly name: string })[]
  /** The configuration of this command. */
  readonly config: Pick<Config, 'value' | 'layers'>
}

/**
 * Throws SETTINGS_MISSING before the question: for settings that a server lacks or, if no server runs, the configuration of this
 * command. A server that does not answer checks its own at the reload.
 */
export function checkSettings({ answers, silent }: AskedServers, { requests, config }: OwnSettings): void {
  for (const [at, request] of requests.entries()) {
    const own = findSettingsOf(request, config.value)
    const file = filesOf(config).at(-1)
    if (answers.length + silent === 0 && own.missing.length > 0) throw settingsMissing(request.name, own.missing, file)
    for (const { url, folder, files, found } of answers) {
      const { missing = [] } = found[at] ?? {}
      const isHere = file !== undefined && !files.includes(file) && missing.every(setting => !own.missing.includes(setting))
      const server = { url, folder, file: files.at(-1), ...(isHere ? { unread: file } : {}) }
      if (missing.length > 0) throw settingsMissingOnServer(request.name, missing, server)
    }
  }
}

const filesOf = ({ layers }: Pick<Config, 'layers'>) => layers.flatMap(({ file }) => file ?? [])
