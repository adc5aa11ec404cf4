// The part of @usebruno/lang (https://github.com/usebruno/bruno) that the tests use; the package has no types.
declare module "@usebruno/lang" {
  interface Entry {
    name: string;
    value: string;
  }

  interface BrunoRequest {
    meta: { name: string; seq: string };
    http: { method: string; url: string; auth: string };
    params?: (Entry & { type: "path" | "query" })[];
    body?: { json?: string };
    /** Variables that Bruno reads from the response. */
    vars?: { res?: Entry[] };
    assertions?: Entry[];
    docs?: string;
  }

  const lang: {
    bruToJsonV2(text: string): BrunoRequest;
    bruToEnvJsonV2(text: string): { variables: (Entry & { secret: boolean })[] };
    collectionBruToJson(text: string): {
      auth: { mode: string; apikey: { key: string; value: string; placement: string } };
    };
  };
  export default lang;
}
