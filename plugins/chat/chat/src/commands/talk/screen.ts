import { styleText } from 'node:util'
import { clipped, errorFromRecord, errorPage, milliseconds, visible } from '@svc/cli/command'
import type { ChatEvent } from '@svc/api-types'

/** Shows a turn: the reply on the standard output, everything about it on the standard error stream. */
export interface Screen {
  show(event: ChatEvent): void
  /** A line for a person about the chat itself. */
  readonly note: (text: string, colour?: Colour) => void
  /** Ends the line of a reply that was cut off. */
  end(): void
}

type Colour = 'gray' | 'green' | 'red' | 'yellow'

/** How something is written: a line that is being edited may have to make room. */
type Beside = (write: () => void) => void

export const jsonScreen = (): Screen => ({
  show: event => void process.stdout.write(`${JSON.stringify(event)}\n`),
  note: text => void process.stderr.write(`${text}\n`),
  end() {},
})

const SHOWN_ARGUMENTS = 200
/** Who decides about a call must see it. */
const ASKED_ARGUMENTS = 2_000
const SHOWN_ERROR = 300

export function textScreen(beside: Beside = write => write()): Screen {
  const [out, aside] = [process.stdout, process.stderr]
  let midLine = false
  const end = () => {
    if (midLine) out.write('\n')
    midLine = false
  }
  const note = (text: string, colour: Colour = 'gray') =>
    beside(() => {
      if (out.isTTY) end()
      aside.write(`${styleText(colour, text, { stream: aside })}\n`)
    })
  return {
    end,
    note,
    show(event) {
      switch (event.type) {
        case 'token':
          midLine = event.content === '' ? midLine : !event.content.endsWith('\n')
          return beside(() => out.write(out.isTTY ? obeyedByNone(event.content) : event.content))
        case 'tool_call':
          return note(`→ ${callText(event, SHOWN_ARGUMENTS)}`)
        case 'tool_result':
          return note(resultText(event), event.success ? 'green' : 'red')
        case 'error':
          end()
          return void aside.write(`${errorPage(errorFromRecord(event))}\n`)
        case 'end':
          end()
          if (aside.isTTY)
            note(`${event.provider}/${event.model}, ${event.tokens_used.total} tokens, ${milliseconds(event.duration_ms)}`)
          return
        case 'start':
        case 'ask': // shown when it is its turn to be asked
          return
      }
    },
  }
}

/** A model's text may bring what a terminal would obey or turn round. */
const obeyedByNone = (text: string) => text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')

const callText = ({ tool, arguments: given }: { readonly tool: string; readonly arguments: object }, most: number) =>
  `${visible(tool)} ${clipped(visible(JSON.stringify(given)), most)}`

/** All that a person decides about. */
export const askText = (event: Extract<ChatEvent, { type: 'ask' }>): string =>
  [`? ${callText(event, ASKED_ARGUMENTS)}`, ...unshown(event), `  ${visible(event.question)}`].join('\n')

/** What is cut off may be what matters. */
function unshown({ arguments: given }: { readonly arguments: object }): string[] {
  const all = visible(JSON.stringify(given)).length
  return all > ASKED_ARGUMENTS ? [`  only ${ASKED_ARGUMENTS} of ${all} characters are shown`] : []
}

function resultText({ tool, success, error, duration_ms: ms }: Extract<ChatEvent, { type: 'tool_result' }>): string {
  const head = `${success ? '✓' : '✗'} ${visible(tool)} ${milliseconds(ms)}`
  return success ? head : `${head}: ${clipped(visible(error ?? ''), SHOWN_ERROR)}`
}
