import { stripVTControlCharacters } from 'node:util'

/** A terminal that shows one picture after the other, and gets back what it showed before. */
export interface LiveScreen extends Disposable {
  draw(text: string): void
}

const OTHER_SCREEN = '\x1b[?1049h\x1b[?25l'
const FORMER_SCREEN = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const END_OF_LINE = '\x1b[K'
const REST_OF_SCREEN = '\x1b[J'
const PLAIN = '\x1b[0m'
/** Of a terminal that does not tell. */
const ROWS = 24
const COLUMNS = 80

/** Takes the terminal's other screen. Each picture is one write over the last one: nothing is cleared first, so nothing flickers. */
export function openLiveScreen(stream: NodeJS.WriteStream): LiveScreen {
  let last = ''
  const paint = () => {
    const lines = last.split('\n').slice(0, (stream.rows || ROWS) - 1)
    const fitting = lines.map(line => `${cut(line, stream.columns || COLUMNS)}${END_OF_LINE}`)
    stream.write(`${HOME}${fitting.join('\n')}\n${REST_OF_SCREEN}`)
  }
  const leave = () => void stream.write(FORMER_SCREEN)
  stream.write(OTHER_SCREEN)
  stream.on('resize', paint)
  process.once('exit', leave)
  return {
    draw(text) {
      last = text
      paint()
    },
    [Symbol.dispose]() {
      stream.off('resize', paint)
      process.off('exit', leave)
      leave()
    },
  }
}

/** A line that is too long would wrap and push the picture off; with its colours it is not worth the counting. */
function cut(line: string, columns: number): string {
  const bare = stripVTControlCharacters(line)
  return bare.length <= columns ? line : `${bare.slice(0, columns)}${PLAIN}`
}
