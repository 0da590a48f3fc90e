import { openSync, readdirSync, readFileSync } from 'node:fs'

/** O_CLOEXEC of the kernel: closed when another program starts. */
const CLOSES = 0o2000000
const MOST = 1024

/**
 * Returns the stdio entries from descriptor 3 on that replace files inherited by this process with /dev/null. Node closes only
 * its own files and the first of the others.
 */
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
    return [] // not Linux
  }
}

function isInherited(file: number): boolean {
  if (file < 3 || file > MOST) return false
  try {
    const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${file}`, 'latin1')) ?? []
    return (Number.parseInt(flags, 8) & CLOSES) === 0
  } catch {
    return false // the descriptor of the listing itself
  }
}
