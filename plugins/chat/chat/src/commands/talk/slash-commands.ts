import { errorFromRecord, oneLine, table } from '@svc/cli/command'
import { codeOf, nearest } from '@svc/core'
import type { Effective } from '@svc/core/contracts'
import type { ChatBody } from '@svc/api-types'
import type { CommandCatalog, ProviderRecord, Switched } from '../catalog/open.ts'
import { slashUnknown } from '../errors.ts'

/** The state that a chat command can read and change. */
export interface Talk {
  readonly catalog: CommandCatalog
  /** The options that are sent with each message. */
  about: Omit<ChatBody, 'message'>
  readonly say: (text: string) => void
  /** Whether the user agrees. */
  agrees(question: string, signal: AbortSignal): Promise<boolean>
  /** The next message starts a new conversation. */
  renew(): void
}

interface SlashCommand {
  readonly usage: string
  readonly summary: string
  /** `end` ends the chat. */
  run(talk: Talk, rest: string, signal: AbortSignal): Promise<'end' | void> | 'end' | void
}

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { usage: '/help', summary: 'Show these commands', run: talk => talk.say(helpText()) },
  model: {
    usage: '/model [[provider/]model]',
    summary: 'Show the models, or choose one for this chat; /model - removes the choice',
    run: (talk, rest, signal) => (rest === '' ? showModels(talk, signal) : takeModel(talk, rest, signal)),
  },
  profile: {
    usage: '/profile [name]',
    summary: 'Show the profiles, or switch to one',
    run: (talk, rest, signal) => switchOrShow(talk, 'profile', rest, signal),
  },
  mode: {
    usage: '/mode [name]',
    summary: 'Show the modes, or switch to one',
    run: (talk, rest, signal) => switchOrShow(talk, 'mode', rest, signal),
  },
  new: {
    usage: '/new',
    summary: 'Start a new conversation',
    run: talk => (talk.renew(), talk.say('a new conversation')),
  },
  exit: { usage: '/exit', summary: 'End, as Ctrl-D does', run: () => 'end' },
}

/** Parses a line: a command with its argument, or a message. `//x` sends `/x`. A path is no command. */
export function readLine(line: string): { readonly command: string; readonly rest: string } | { readonly message: string } {
  if (line.startsWith('//')) return { message: line.slice(1) }
  const [, command, rest = ''] = /^\/([a-z_-]*)(?:\s+(.*))?$/is.exec(line) ?? []
  return command === undefined ? { message: line } : { command: command.toLowerCase(), rest: rest.trim() }
}

/** Throws SLASH_UNKNOWN and errors of the command. */
export async function runSlash(talk: Talk, command: string, rest: string, signal: AbortSignal): Promise<'end' | void> {
  const found = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
  if (!found) throw slashUnknown(command, nearest(command, Object.keys(COMMANDS)))
  return await found.run(talk, rest, signal)
}

/** Completions for the beginning of a command. */
export const completions = (line: string): string[] =>
  Object.keys(COMMANDS)
    .map(name => `/${name}`)
    .filter(word => word.startsWith(line))

const helpText = () =>
  [
    table(Object.values(COMMANDS).map(({ usage, summary }) => [`  ${usage}`, summary])),
    '  Start a message with // to send a single /. Ctrl-C aborts a reply; at the prompt, it ends the chat.',
  ].join('\n')

const MOST_MODELS = 20

async function showModels({ catalog, about, say }: Talk, signal: AbortSignal): Promise<void> {
  const [now, providers] = await Promise.all([catalog.effective(signal), catalog.providers(signal)])
  say(`this chat uses ${chosenText(about, now)}`)
  say(table(providers.map(({ name, models }) => [`  ${oneLine(name)}`, namesText(models)])))
}

function chosenText({ provider, model }: Talk['about'], now: Effective): string {
  if (provider === undefined && model === undefined) return `${now.provider}/${now.model} (profile ${now.profile})`
  return [provider, model].filter(word => word !== undefined).join('/')
}

function namesText(names: readonly string[]): string {
  const rest = names.length - MOST_MODELS
  return [...names.slice(0, MOST_MODELS).map(oneLine), ...(rest > 0 ? [`${rest} more`] : [])].join(', ')
}

/** Accepts unlisted names with a warning: providers can have unlisted models, and there are aliases. */
async function takeModel(talk: Talk, word: string, signal: AbortSignal): Promise<void> {
  const { provider: _provider, model: _model, ...rest } = talk.about
  if (word === '-') {
    talk.about = rest
    return talk.say('the profile chooses the model')
  }
  const providers = await talk.catalog.providers(signal)
  const choice = choiceOf(word, providers)
  talk.about = { ...rest, ...choice }
  const listed = providers.filter(({ name }) => choice.provider === undefined || name === choice.provider)
  const known = listed.flatMap(({ models }) => models)
  talk.say(`this chat uses ${word}${known.includes(choice.model) ? '' : unlisted(choice.model, known)}`)
}

function choiceOf(word: string, providers: readonly ProviderRecord[]): { provider?: string; model: string } {
  const slash = word.indexOf('/')
  const provider = word.slice(0, Math.max(0, slash))
  // names of models can contain a slash
  const isProvider = slash > 0 && slash < word.length - 1 && providers.some(({ name }) => name === provider)
  return isProvider ? { provider, model: word.slice(slash + 1) } : { model: word }
}

function unlisted(model: string, known: readonly string[]): string {
  const near = nearest(model, known)
  return `, which no provider lists${near === undefined ? '' : `; did you mean "${near}"?`}`
}

async function switchOrShow(talk: Talk, what: Switched, name: string, signal: AbortSignal): Promise<void> {
  const { catalog, say } = talk
  if (name === '') return say(stateText(what, await catalog.effective(signal)))
  if (
    catalog.shared &&
    !(await talk.agrees(`  this switches ${catalog.of} for all its clients. Continue? [y]es / [n]o: `, signal))
  )
    return say(`the ${what} stays`)
  const now = await catalog.switch(what, name, signal).catch((error: unknown) => {
    // a host in this process reports the names like a server
    throw codeOf(error) === 'INVALID_VALUE' ? errorFromRecord(recordOf(error)) : error
  })
  say(stateText(what, now))
  if (what === 'profile' && (talk.about.model ?? talk.about.provider) !== undefined)
    say('  this chat keeps its model; /model - removes the choice')
}

const recordOf = (error: unknown) => {
  const { message, details } = error as { message: string; details: Readonly<Record<string, unknown>> }
  return { error: message, error_code: 'INVALID_VALUE', details }
}

function stateText(what: Switched, now: Effective): string {
  const all = what === 'mode' ? now.modes : now.profiles
  const marked = all.map(name => (name === now[what] ? `${oneLine(name)} (now)` : oneLine(name)))
  return what === 'mode' ? `modes: ${marked.join(', ')}` : `profiles: ${marked.join(', ')}; asks ${now.provider}/${now.model}`
}
