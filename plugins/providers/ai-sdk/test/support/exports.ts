// A package of no known shape: two makers called like nothing, a ready provider, and what is no maker at all.
const models = {
  languageModel: () => ({ specificationVersion: 'v3', doStream: () => Promise.reject(new Error('not asked here')) }),
}

export const createOne = () => models
export const createTwo = () => models
export const createNothing = () => ({})
export const ready = models
export const word = 'no function'
export default models
