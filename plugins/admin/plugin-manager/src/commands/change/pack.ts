import { statSync } from 'node:fs'
import { shownPath } from '@svc/core'
import { packSet, readLock } from '../../set.ts'
import { fromCaller, abortOnInterrupt, INTERRUPTED, setHome } from '@svc/cli/program'
import { tell } from './change.ts'
import { openProgress } from './progress.ts'

/** `svc plugins pack`: all that is installed, in one file. */
export async function packPlugins({ file, json }: { readonly file: string; readonly json: boolean }): Promise<number> {
  using interrupt = abortOnInterrupt()
  using progress = openProgress()
  const path = fromCaller(file)
  try {
    await packSet(setHome(), path, { signal: interrupt.signal, onProgress: progress.tell })
  } catch (error) {
    if (!interrupt.signal.aborted) throw error
    progress.clear()
    process.stderr.write('interrupted: nothing was written\n')
    return INTERRUPTED
  }
  progress.clear()
  const names = (await readLock(setHome())).plugins.map(one => `${one.name} ${one.version}`)
  const bytes = statSync(path).size
  return tell({ json }, { text: `wrote ${shownPath(path)}: ${names.join(', ')}`, facts: { file: path, bytes, plugins: names } })
}
