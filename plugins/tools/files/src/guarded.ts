import { isProtected, type Roots } from '@svc/safe-fs'

/** A root, the svc home, and a folder with one of them in it stays where it is. */
export function refuseRoots(roots: Roots, real: string, shown: string): void {
  if (roots.stays(real)) throw isProtected(shown, 'is a root of the tools or the svc home, or holds one: it stays as it is')
}
