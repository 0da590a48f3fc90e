import type { components, paths } from './api.ts'

// Types of a request and its response by method and path, from the generated types.

/** Types of the JSON of the API, by their names in /openapi.json. */
export type Schemas = components['schemas']

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The paths that have this method. */
export type PathsOf<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never }[keyof paths]

type Operation<M extends Method, P extends keyof paths> = paths[P] extends { [K in M]: infer O } ? O : never

type ContentOf<O, Type extends string> = O extends { responses: infer R }
  ? {
      [S in keyof R]: S extends 200 | 201 | 202 ? (R[S] extends { content: { [K in Type]: infer D } } ? D : never) : never
    }[keyof R]
  : never

type JsonOf<O> = ContentOf<O, 'application/json'>

/** The JSON of a successful response; undefined if it has no body. */
export type ReplyOf<M extends Method, P extends keyof paths> = [JsonOf<Operation<M, P>>] extends [never]
  ? undefined
  : JsonOf<Operation<M, P>>

/** The paths that stream events with this method. */
export type StreamPathsOf<M extends Method> = {
  [P in keyof paths]: [ContentOf<Operation<M, P>, 'text/event-stream'>] extends [never] ? never : P
}[keyof paths]

type DataOf<D> = string extends D ? unknown : D

/** The data of the events of a stream; unknown if the document has no schema of them. */
export type EventOf<M extends Method, P extends keyof paths> = DataOf<ContentOf<Operation<M, P>, 'text/event-stream'>>

type BodyIn<O> = O extends { requestBody?: never }
  ? object
  : O extends { requestBody: { content: { 'application/json': infer B } } }
    ? { readonly body: B }
    : O extends { requestBody?: { content: { 'application/json': infer B } } }
      ? { readonly body?: B }
      : object

type ParametersIn<O> = O extends { parameters: infer P extends { query?: unknown; path?: unknown } }
  ? Pick<P, 'query' | 'path'>
  : object

/** The parameters of the path, the query and the body of a request. */
export type InputOf<M extends Method, P extends keyof paths> = ParametersIn<Operation<M, P>> & BodyIn<Operation<M, P>>

/** An argument that can be left out if nothing in it is required. */
export type Argument<Input, More> = object extends Input ? [input?: Input & More] : [input: Input & More]

/** The JSON body of a request. */
export type BodyOf<M extends Method, P extends keyof paths> = InputOf<M, P> extends { readonly body?: infer B } ? B : never

/** The query of a request. */
export type QueryOf<M extends Method, P extends keyof paths> = InputOf<M, P> extends { query?: infer Q } ? NonNullable<Q> : never
