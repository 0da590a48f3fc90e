import { errorPage, INTERRUPTED, passingPerson } from '@svc/cli/command'
import type { CommandContext } from '@svc/core/contracts'
import type { ChatBody } from '@svc/api-types'
import { createAsker } from './ask.ts'
import { openHistory } from './history.ts'
import { type Lines, openLines } from './lines.ts'
import type { Partner } from './partner.ts'
import { jsonScreen, textScreen } from './screen.ts'
import { completions, readLine, runSlash, type Talk } from './slash-commands.ts'
import { type Room, turn } from './turn.ts'

type About = Omit<ChatBody, 'message'>

/** `svc chat "…"` and the pipe: one turn; Ctrl-C aborts it, a second one ends at once. On a terminal somebody can be asked. */
export async function oneShot(partner: Partner, ask: ChatBody, json: boolean, signal: AbortSignal): Promise<number> {
  if (json || !process.stdin.isTTY || !process.stderr.isTTY)
    return (await turn({ partner, screen: json ? jsonScreen() : textScreen(), json }, ask, signal)).code
  const person = passingPerson(process.stderr)
  const screen = textScreen(person.beside)
  return (await turn({ partner, screen, json, asker: createAsker(person, screen.note) }, ask, signal)).code
}

/** A conversation on the terminal, until Ctrl-D or `/exit`. Ctrl-C aborts a turn; at the prompt, or once more, it ends. */
export async function converse(partner: Partner, about: About, json: boolean, { home, signal }: CommandContext): Promise<number> {
  const history = openHistory(home)
  const output = json || !process.stdout.isTTY ? process.stderr : process.stdout
  using lines = openLines({ output, history, complete: completions, signal })
  const screen = json ? jsonScreen() : textScreen(lines.beside)
  // a script that reads events is not asked
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

/** One line: a message or a command. */
async function take(line: string, room: Room, talk: Talk, lines: Lines): Promise<'end' | void> {
  if (line.trim() === '') return
  const read = readLine(line)
  if ('command' in read) return await lines.during(signal => obey(talk, read.command, read.rest, signal))
  const done = await lines.during(signal => turn(room, { ...talk.about, message: read.message }, signal))
  if (done === undefined) return 'end'
  const { conversation_id: _left, ...rest } = talk.about
  talk.about = done.lost || done.conversationId === undefined ? rest : { ...rest, conversation_id: done.conversationId }
  if (done.lost) room.screen.note('This conversation is not there any more: the next line begins a new one.')
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
