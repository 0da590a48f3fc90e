import { openSync, readdirSync, readFileSync } from 'node:fs'

/** The kernel's O_CLOEXEC: closed at the start of another program. */
const CLOSES = 0o2000000
const MOST = 1024

/** What a child gets from its fourth file on: nothing, in the place of each file that this process was started with. Node closes its own ones and the first of the others only. */
export const blockInheritedFiles = (): readonly (number | 'ignore')[] => (known ??= cover(inherited()))
let known: readonly (number | 'ignore')[] | undefined

function cover(files: readonly number[]): readonly (number | 'ignore')[] {
  if (files.length === 0) return []
  const nothing = openSync('/dev/null', 'r+')
  return Array.from({ length: Math.max(...files) - 2 }, (_, at) => (files.includes(at + 3) ? nothing : 'ignore'))
}

function inherited(): number[] {
  try {
    return readdirSync('/proc/self/fdinfo').map(Number).filter(isInherited)
  } catch {
    return [] // no Linux
  }
}

function isInherited(file: number): boolean {
  if (file < 3 || file > MOST) return false
  try {
    const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${file}`, 'latin1')) ?? []
    return (Number.parseInt(flags, 8) & CLOSES) === 0
  } catch {
    return false // it was the one that the list itself was read by
  }
}
