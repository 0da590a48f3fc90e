import type { Progress } from '../../set.ts'
import { oneLine } from '@svc/cli/command'

const WORDS: Readonly<Record<string, string>> = {
  fetch: 'fetching',
  inspect: 'looking into',
  resolve: 'finding out what it brings with it',
  copy: 'copying what stays',
  install: 'putting the packages together',
  scripts: 'running the install scripts of',
  hash: 'taking the hashes of all files',
  unpack: 'unpacking',
  pack: 'packing',
  commit: 'putting it in force',
  describe: 'running it once in its sandbox:',
  reload: 'reloading the server',
  start: 'starting a host with it once',
}

/** One line on a terminal that says what is under way; nothing where there is none. */
export interface ProgressLine extends Disposable {
  readonly tell: (progress: {
    readonly step: Progress['step'] | 'describe' | 'reload' | 'start'
    readonly plugin?: string
  }) => void
  readonly clear: () => void
}

const CLEAR = '\r\u001b[K'

export function openProgress(stream: NodeJS.WriteStream = process.stderr): ProgressLine {
  const clear = () => void (stream.isTTY && stream.write(CLEAR))
  return {
    tell({ step, plugin = '' }) {
      if (!stream.isTTY) return
      const text = `${WORDS[step] ?? step} ${oneLine(plugin)}`.trim()
      stream.write(`${CLEAR}${text.slice(0, Math.max(20, (stream.columns || 80) - 4))} …`)
    },
    clear,
    [Symbol.dispose]: clear,
  }
}
