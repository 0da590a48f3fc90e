import { oneLine, visible } from '@svc/cli/command'
import type { Progress } from '../../set.ts'

/** A step of a change. */
export type Step = Omit<Progress, 'step'> & { readonly step: Progress['step'] | 'describe' | 'reload' | 'start' | 'wait' }

/** Shows the steps of a change: the current one in one line of a terminal, otherwise a line for each. */
export interface ProgressLine extends Disposable {
  readonly report: (step: Step) => void
  /** Removes the line from the terminal. */
  readonly clear: () => void
}

const WORDS: Readonly<Record<Step['step'], string>> = {
  fetch: 'fetching',
  inspect: 'inspecting',
  resolve: 'resolving the dependencies',
  copy: 'copying unchanged packages',
  install: 'installing the packages',
  scripts: 'running the install scripts of',
  hash: 'hashing all files',
  unpack: 'unpacking the bundle',
  pack: 'packing',
  commit: 'activating the change',
  describe: 'running once in its sandbox:',
  reload: 'reloading the server',
  start: 'starting a host once with the change',
  wait: 'waiting until another process has changed the plugins',
}

const CLEAR = '\r\u001b[K'
const SHORTEST = 20

/** `quiet`: shows nothing without a terminal, for a command that prints JSON. */
export function openProgress({ quiet = false } = {}, stream: NodeJS.WriteStream = process.stderr): ProgressLine {
  const clear = () => void (stream.isTTY && stream.write(CLEAR))
  return {
    report(step) {
      const text = stepText(step)
      if (stream.isTTY) stream.write(`${CLEAR}${text.slice(0, Math.max(SHORTEST, (stream.columns || 80) - 4))} …`)
      else if (!quiet) stream.write(`${text}\n`)
    },
    clear,
    [Symbol.dispose]: clear,
  }
}

/** `[2/6] fetching svc-plugin-weather`. */
export function stepText({ step, plugin = '', at, of = 1, packages }: Step): string {
  const count = at === undefined || of === 1 ? '' : `[${at}/${of}] `
  const number = packages === undefined ? '' : `(${packages})`
  return `${count}${[WORDS[step], visible(oneLine(plugin)), number].filter(Boolean).join(' ')}`
}
