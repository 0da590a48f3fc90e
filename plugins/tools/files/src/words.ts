/** JSON Schema of a path that a caller writes. */
export const pathOf = (description: string) => ({ type: 'string', minLength: 1, maxLength: 4096, description }) as const

/** `1 file`, `2 files`. */
export const counted = (count: number, word: string): string => `${count} ${count === 1 ? word : `${word}s`}`
