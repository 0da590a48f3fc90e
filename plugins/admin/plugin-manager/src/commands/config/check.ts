import { errorFacts, printError } from '@svc/cli/command'
import { findSettings, here, hostOptions, type ServeOptions, sourceNames, sourcesOf, startProblems } from '@svc/cli/program'
import { type Config, get, type Plan, planHost, slotsOf, StartFailed, type SvcError } from '@svc/core'
import { isToolServer, toolNameProblems, uncheckedWords } from '../../configuration/problems.ts'
import { apiKeyMissing, schemeMissing } from '../errors.ts'

/** A command that starts a server, with the problems for which it would refuse. */
interface Surface {
  readonly command: 'svc serve' | 'svc mcp serve'
  readonly options: ServeOptions
}

interface CheckAsked {
  readonly json: boolean
  /** Also start the plugins once. */
  readonly start: boolean
}

/** `svc config check`: reports all problems of `svc serve` and `svc mcp serve`; resolves with the exit code. */
export async function checkConfig(options: ServeOptions, { json, start }: CheckAsked): Promise<number> {
  const place = here()
  const config = await findSettings(options, place)
  const plan = await planHost(hostOptions(config, place.home))
  const server = await problemsOf({ command: 'svc serve', options }, { config, plan }, start)
  const hasToolServer = plan.plannedPlugins.some(isToolServer)
  const tools = hasToolServer ? await toolServerProblems(options, start) : []
  const known = new Set(server.map(textOf))
  const ofTools = tools.filter(problem => !known.has(textOf(problem)))
  const good = server.length + ofTools.length === 0
  const unchecked = [
    ...(hasToolServer ? [] : ['svc mcp serve, because no plugin provides the tool server']),
    ...uncheckedWords(plan, start),
  ]
  if (json) {
    const problems = [...all(server), ...all(ofTools).map(facts => ({ ...facts, command: 'svc mcp serve' }))]
    print(JSON.stringify({ ok: good, sources: sourcesOf(config), problems, notes: all(plan.notes), unchecked }, null, 2))
    return good ? 0 : 1
  }
  if (good) print(`The configuration is valid (${sourceNames(config).join(', ') || 'defaults only'}).`)
  if (server.length > 0) printError(new StartFailed(server))
  if (ofTools.length > 0) {
    process.stderr.write(`${server.length > 0 ? '\n' : ''}Only \`svc mcp serve\` would refuse:\n\n`)
    printError(new StartFailed(ofTools))
  }
  for (const { message, where, hint } of plan.notes) process.stderr.write(`note: ${message} (${where}): ${hint}\n`)
  if (good) print(['Not checked:', ...unchecked.map(text => `  ${text}`)].join('\n'))
  return good ? 0 : 1
}

const print = (text: string) => void process.stdout.write(`${text}\n`)
const all = (problems: readonly SvcError[]) => problems.flatMap(errorFacts)
const textOf = ({ code, plugin, message, where }: SvcError) => JSON.stringify([code, plugin, message, where])

/** `svc mcp serve` has another address, and publishes the tools. */
async function toolServerProblems(options: ServeOptions, start: boolean): Promise<SvcError[]> {
  const place = here()
  const surface: Surface = { command: 'svc mcp serve', options: { ...options, surface: 'mcp' } }
  const config = await findSettings(surface.options, place)
  const plan = await planHost(hostOptions(config, place.home))
  return problemsOf(surface, { config, plan }, start)
}

/** The problems of the plan, those of the server when it opens, and with `start` those of all plugins when they start. */
async function problemsOf(
  { command, options }: Surface,
  { config, plan }: { readonly config: Config; readonly plan: Plan },
  start: boolean
): Promise<SvcError[]> {
  const found = [...plan.problems, ...keyProblems(config, plan), ...toolNameProblems(config, plan)]
  if (!start || found.length > 0) return found
  const kept = command === 'svc mcp serve' ? ['mcp.server'] : []
  return startProblems({ options, kept })
}

/** `svc serve` refuses to open with authentication and without a scheme, or without its key. */
function keyProblems({ value }: Config, { plannedPlugins, loaded }: Plan): SvcError[] {
  if (get(value, ['server', 'auth', 'enabled']) !== true) return []
  if (!loaded.some(({ found }) => !found.declared || slotsOf(found.manifest).some(([slot]) => slot === 'auth_schemes')))
    return [schemeMissing()]
  const planned = plannedPlugins.find(({ plugin }) => plugin.section === 'server.auth.api_key_env')
  const variable = planned?.config
  if (planned === undefined || typeof variable !== 'string' || process.env[variable]?.trim()) return []
  return [apiKeyMissing(planned.name, variable)]
}
