import { isProtected, type Roots } from '@svc/safe-fs'

/** A root, the svc home, and a folder with one of them in it stays where it is. */
export function refuseRoots(roots: Roots, real: string, shown: string): void {
  if (roots.stays(real)) throw isProtected(shown, 'is a root of the tools or the svc home, or holds one: it stays as it is')
}

/** JSON Schema of a path that a caller writes. */
export const pathOf = (description: string) => ({ type: 'string', minLength: 1, maxLength: 4096, description }) as const

/** `1 file`, `2 files`. */
export const counted = (count: number, word: string): string => `${count} ${count === 1 ? word : `${word}s`}`
