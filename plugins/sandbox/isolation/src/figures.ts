import { readFile } from 'node:fs/promises'

/** Ticks of a second, and bytes of a page, as Linux tells them on all machines that Node runs on. */
const TICK_MS = 10
const PAGE_BYTES = 4096
const [UTIME, STIME, RESIDENT] = [11, 12, 21]

/** What a process and all that it has started take, as the kernel says. */
export async function figuresOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }> {
  const all = await treeOf(pid)
  return {
    cpuMs: all.reduce((sum, one) => sum + one.cpuMs, 0),
    memoryBytes: all.reduce((sum, one) => sum + one.memoryBytes, 0),
  }
}

async function treeOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }[]> {
  const text = (path: string) => readFile(`/proc/${pid}/${path}`, 'utf8').catch(() => '')
  const [stat, children] = await Promise.all([text('stat'), text(`task/${pid}/children`)])
  if (stat === '') return []
  // the name before may hold spaces and brackets
  const words = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const own = { cpuMs: (words[UTIME]! + words[STIME]!) * TICK_MS, memoryBytes: words[RESIDENT]! * PAGE_BYTES }
  const below = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map(child => treeOf(Number(child)))
  )
  return [own, ...below.flat()]
}
