import { fstatSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { ChatBody } from '@svc/api-types'
import { errorPage, INTERRUPTED, passingPerson } from '@svc/cli/command'
import type { CommandContext, ServerChoice } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import { nothingToSay } from '../errors.ts'
import { type Lines, openHistory, openLines } from './lines.ts'
import { localPartner, type Partner, remotePartner } from './partner.ts'
import { completions, readLine, runSlash, type Talk } from './slash-commands.ts'
import { createAsker, failureEvent, jsonScreen, type TurnOutput, textScreen, turn } from './turn.ts'

/** The arguments and flags of `svc chat`. */
interface ChatOptions extends ServerChoice {
  readonly message?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly debug: boolean
  readonly json: boolean
  readonly conversation?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
  readonly tools?: readonly string[] | undefined
}

/** `svc chat`. Resolves with the exit code: 1 if the turn failed, 130 after an interrupt. Throws MESSAGE_MISSING. */
export async function chat(command: CommandContext, options: ChatOptions): Promise<number> {
  const interactive = options.message === undefined && process.stdin.isTTY === true
  const message = interactive ? '' : await messageOf(options.message)
  try {
    const partner = await partnerOf(command, options)
    if (interactive) return await converse(partner, askOf(options), options.json, command)
    return await oneShot(partner, { message, ...askOf(options) }, options.json, command.signal)
  } catch (error) {
    if (!options.json) throw error
    // a program that reads events also gets errors before the first event
    jsonScreen().show(failureEvent(error))
    return 1
  }
}

/** The message of the command line, followed by the input from a pipe. */
async function messageOf(given: string | undefined): Promise<string> {
  const piped = given === undefined || isPiped() ? (await text(process.stdin)).trimEnd() : ''
  const message = [given, piped].filter(Boolean).join('\n\n')
  if (message.trim() === '') throw nothingToSay()
  return message
}

// A parent program often leaves an open socket as standard input. With an argument, only a pipe or a file is read.
function isPiped(): boolean {
  const stat = fstatSync(0)
  return stat.isFIFO() || stat.isFile()
}

/** Opens the named server, else the running server, else a host in this process. `--profile` and `--mode` start a host, because a server has one for all its clients. */
async function partnerOf(command: CommandContext, options: ChatOptions): Promise<Partner> {
  const { url, port, config, debug, profile, mode } = options
  const selection = definedOf({ profile, mode })
  const isOwn = Object.keys(selection).length > 0
  const server = await command.server({ url, port, config, local: options.local || isOwn })
  return server ? remotePartner(server) : localPartner(command, { debug, ...(isOwn ? { settings: { selection } } : {}) })
}

const askOf = ({ conversation, provider, model, temperature, maxTokens, tools }: ChatOptions): Omit<ChatBody, 'message'> =>
  definedOf({ conversation_id: conversation, provider, model, temperature, max_tokens: maxTokens, tools })

type About = Omit<ChatBody, 'message'>

/** Runs one turn, for `svc chat "…"` and pipes. Ctrl-C aborts it, a second Ctrl-C exits at once. A terminal can answer approval questions. */
async function oneShot(partner: Partner, ask: ChatBody, json: boolean, signal: AbortSignal): Promise<number> {
  if (json || !process.stdin.isTTY || !process.stderr.isTTY)
    return (await turn({ partner, screen: json ? jsonScreen() : textScreen(), json }, ask, signal)).code
  const person = passingPerson(process.stderr)
  const screen = textScreen(person.beside)
  return (await turn({ partner, screen, json, asker: createAsker(person, screen.note) }, ask, signal)).code
}

/** Runs a conversation on the terminal until Ctrl-D or `/exit`. Ctrl-C aborts a turn. At the prompt, or pressed again, it ends the conversation. */
async function converse(partner: Partner, about: About, json: boolean, { home, signal }: CommandContext): Promise<number> {
  const history = openHistory(home)
  const output = json || !process.stdout.isTTY ? process.stderr : process.stdout
  using lines = openLines({ output, history, complete: completions, signal })
  const screen = json ? jsonScreen() : textScreen(lines.beside)
  // a script that reads events gets no questions
  const asker = json || !output.isTTY ? undefined : createAsker(lines, screen.note)
  const talk = talkOf(partner, about, lines, screen.note, () => asker?.forget())
  screen.note(`Chatting with ${partner.catalog.of}. /help shows the commands, Ctrl-D ends.`)
  lines.prompt()
  for await (const line of lines.typed) {
    history.add(line)
    if ((await take(line, { partner, screen, json, asker }, talk, lines)) === 'end') break
    lines.prompt()
  }
  output.write('\n')
  return lines.interrupted ? INTERRUPTED : 0
}

/** Handles a line: a message or a command. */
async function take(line: string, output: TurnOutput, talk: Talk, lines: Lines): Promise<'end' | void> {
  if (line.trim() === '') return
  const read = readLine(line)
  if ('command' in read) return await lines.during(signal => obey(talk, read.command, read.rest, signal))
  const done = await lines.during(signal => turn(output, { ...talk.about, message: read.message }, signal))
  if (done === undefined) return 'end'
  const { conversation_id: _left, ...rest } = talk.about
  talk.about = done.lost || done.conversationId === undefined ? rest : { ...rest, conversation_id: done.conversationId }
  if (done.lost) output.screen.note('This conversation no longer exists. The next message starts a new one.')
}

async function obey(talk: Talk, command: string, rest: string, signal: AbortSignal): Promise<'end' | void> {
  try {
    return await runSlash(talk, command, rest, signal)
  } catch (error) {
    if (!signal.aborted) process.stderr.write(`${errorPage(error)}\n`)
  }
}

function talkOf(partner: Partner, about: About, lines: Lines, say: (text: string) => void, forget: () => void): Talk {
  return {
    catalog: partner.catalog,
    about,
    say,
    agrees: async (question, signal) => /^\s*y(es)?\s*$/i.test((await lines.question(question, signal)) ?? ''),
    renew() {
      const { conversation_id: _left, ...rest } = this.about
      this.about = rest
      forget()
    },
  }
}
