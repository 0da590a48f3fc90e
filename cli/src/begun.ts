import { statSync, type Stats } from 'node:fs'
import { createdFiles } from '@svc/runtime'

/** Files that svc itself has begun, each with its stamp at that moment. */
export type Begun = Readonly<Record<string, string>>

/** Changes whenever the file is written, or another one is put in its place. */
const stampOf = ({ ino, size, ctimeMs }: Stats) => `${ino} ${size} ${ctimeMs}`

/** Those of this process. */
export const begunHere = (): Begun => Object.fromEntries([...createdFiles].map(([file, stats]) => [file, stampOf(stats)]))

/** Whether nobody has written it since. */
export function isAsBegun(file: string, begun: Begun): boolean {
  const stats = begun[file] === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
  return stats !== undefined && stampOf(stats) === begun[file]
}
