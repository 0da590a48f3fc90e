/** An object as JSON has it. */
export type Tree = { readonly [key: string]: unknown }

export const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The member as an object; an empty one where it is none. */
export const treeIn = (value: unknown, key: string): Tree => {
  const member = isTree(value) ? value[key] : undefined
  return isTree(member) ? member : {}
}
export const textIn = (value: unknown, key: string): string | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return typeof member === 'string' ? member : undefined
}
/** A whole number of at least `least`. */
export const countIn = (value: unknown, key: string, least = 0): number | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return Number.isSafeInteger(member) && Number(member) >= least ? Number(member) : undefined
}
