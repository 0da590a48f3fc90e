import type { Stats } from 'node:fs'

/** Files that this process has begun for a person to go on with, by path, each as it was then: one that is so still was changed by nobody. */
export const begunFiles = new Map<string, Stats>()
