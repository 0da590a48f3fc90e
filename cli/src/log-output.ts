import { styleText } from 'node:util'
import { type DestinationStream, pino } from 'pino'

/** Where a process writes its log. */
export interface LogOutput {
  readonly destination: DestinationStream
  /** Writes what is still in memory; for the end of the process. */
  flush(): void
}

const FLUSH_MS = 500
const BUFFER = 4096

/** Log lines on the standard output: JSON for programs, in memory for half a second at most; one readable line each on a terminal. */
export function openLog(stream: NodeJS.WriteStream, json: boolean): LogOutput {
  return stream.isTTY && !json ? terminalLog(stream) : jsonLog()
}

function terminalLog(stream: NodeJS.WriteStream): LogOutput {
  return { destination: { write: line => void stream.write(readable(line, stream)) }, flush() {} }
}

function jsonLog(): LogOutput {
  const destination = pino.destination({ fd: 1, sync: false, minLength: BUFFER })
  // The reader of a pipe may go before this process does; there is nobody to tell.
  destination.on('error', () => {})
  setInterval(() => destination.flush(), FLUSH_MS).unref()
  return { destination, flush: () => flushNow(destination) }
}

/** Nothing was written yet, or its reader is gone: both have nothing to flush. */
function flushNow(destination: { flushSync(): void }) {
  try {
    destination.flushSync()
  } catch {
    return
  }
}

const LEVELS: Readonly<Record<number, { word: string; colour: 'gray' | 'green' | 'yellow' | 'red' }>> = {
  20: { word: 'debug', colour: 'gray' },
  30: { word: 'info ', colour: 'green' },
  40: { word: 'warn ', colour: 'yellow' },
  50: { word: 'error', colour: 'red' },
}

/** One JSON log line as a person reads it: time, level, plugin, sentence, facts. */
export function readable(line: string, stream: NodeJS.WriteStream): string {
  const { time, level, plugin, msg = '', err, ...facts } = JSON.parse(line) as Record<string, unknown> & { err?: { stack?: string } }
  const paint = (colour: 'gray' | 'green' | 'yellow' | 'red', text: string) => styleText(colour, text, { stream })
  const { word, colour } = LEVELS[Number(level)] ?? { word: String(level), colour: 'gray' as const }
  const head = [paint('gray', String(time).slice(11, 23)), paint(colour, word), ...(plugin ? [paint('gray', shortName(String(plugin)))] : [])]
  const rest = Object.entries(facts).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const stack = err?.stack ? `\n${err.stack}` : ''
  return `${[...head, String(msg), paint('gray', rest.join(' '))].join(' ').trimEnd()}${stack}\n`
}

const shortName = (plugin: string) => plugin.replace(/^@svc\/plugin-/, '')
