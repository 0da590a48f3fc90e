import { styleText } from 'node:util'
import type { ChatEvent } from '@svc/wire'
import { refused } from './errors.ts'
import { printError } from './report-error.ts'
import { milliseconds } from './text.ts'

/** Shows a turn: the reply on the standard output, everything about it on the standard error stream. */
export interface Screen {
  show(event: ChatEvent): void
  /** Ends the line of a reply that was cut off. */
  end(): void
}

export function createScreen(json: boolean): Screen {
  return json
    ? { show: event => void process.stdout.write(`${JSON.stringify(event)}\n`), end() {} }
    : textScreen(process.stdout, process.stderr)
}

function textScreen(out: NodeJS.WriteStream, aside: NodeJS.WriteStream): Screen {
  let midLine = false
  const end = () => {
    if (midLine) out.write('\n')
    midLine = false
  }
  const note = (text: string) => {
    if (out.isTTY) end()
    aside.write(`${styleText('gray', text, { stream: aside })}\n`)
  }
  return {
    end,
    show(event) {
      switch (event.type) {
        case 'token':
          out.write(event.content)
          midLine = event.content === '' ? midLine : !event.content.endsWith('\n')
          return
        case 'tool_call':
          return note(`→ ${event.tool} ${JSON.stringify(event.arguments)}`)
        case 'tool_result':
          return note(`← ${event.tool} ${event.success ? 'done' : `failed: ${event.error}`} (${milliseconds(event.duration_ms)})`)
        case 'error':
          end()
          return printError(refused(event))
        case 'end':
          end()
          if (aside.isTTY)
            note(`${event.provider}/${event.model}, ${event.tokens_used.total} tokens, ${milliseconds(event.duration_ms)}`)
          return
        case 'start':
          return
      }
    },
  }
}
