import { isProtected, type Roots } from '@svc/safe-fs'

/** Refuses to move or delete a root, the svc home, or a folder that contains one. */
export function refuseRoots(roots: Roots, real: string, shown: string): void {
  if (roots.stays(real))
    throw isProtected(shown, 'is or contains a root of the tools or the svc home, and cannot be moved or deleted')
}

/** JSON Schema of a path argument. */
export const pathOf = (description: string) => ({ type: 'string', minLength: 1, maxLength: 4096, description }) as const

/** `1 file`, `2 files`. */
export const counted = (count: number, word: string, plural = `${word}s`): string => `${count} ${count === 1 ? word : plural}`
