import { rmSync, writeFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { COUNT, type WatcherData, WHOSE } from './handling.ts'

// A separate thread, because a process that hangs or is killed for lack of memory can no longer write.
const LOOK_MS = 100
const { cells, path } = workerData as WatcherData
const plugins: string[] = []
let before = 0
let isWritten = false

parentPort!.on('message', (plugin: string) => plugins.push(plugin))
setInterval(() => {
  const count = Atomics.load(cells, COUNT)
  const plugin = plugins[Atomics.load(cells, WHOSE) - 1]
  const isStuck = plugin !== undefined && count === before
  before = count
  if (isStuck === isWritten) return
  isWritten = isStuck
  try {
    if (isStuck) writeFileSync(path, plugin, { mode: 0o600 })
    else rmSync(path, { force: true })
  } catch {
    // Without a folder there is no trace, and no plugin is blamed.
  }
}, LOOK_MS)
