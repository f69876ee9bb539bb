// A purchase and its redemption with the client that Kiota makes of the description.
using System.Text.Json;
using Gift.Client;
using Gift.Client.Models;
using Microsoft.Kiota.Abstractions.Authentication;
using Microsoft.Kiota.Http.HttpClientLibrary;

var url = Environment.GetEnvironmentVariable("SERVICE_URL") ?? "";

GiftClient ClientOf(string? token)
{
    IAuthenticationProvider provider = token is null
        ? new AnonymousAuthenticationProvider()
        : new BaseBearerTokenAuthenticationProvider(new FixedToken(token));
    return new GiftClient(new HttpClientRequestAdapter(provider) { BaseUrl = url });
}

var app = await ClientOf(null).Oauth.Token.PostAsync(new GetAccessTokenBody
{
    ClientCredentials = new ClientCredentials
    {
        GrantType = "client_credentials",
        ClientId = "app",
        ClientSecret = "app-secret",
    },
});

async Task<GiftClient> LogIn(string user)
{
    var answer = await ClientOf(app?.AccessToken).Oauth.Token.PostAsync(new GetAccessTokenBody
    {
        Password = new Password
        {
            GrantType = "password",
            Username = $"{user}@test.example",
            PasswordProp = $"{user}-password",
        },
    });
    return ClientOf(answer?.AccessToken);
}

var buyer = await LogIn("ann");
var bought = await buyer.Api.V2.Transactions.PostAsync(
    new Purchase
    {
        Payment = new() { Method = "card", Reference = "pm_card_visa" },
        PurchaseProp = new()
        {
            Type = "gift",
            Reference = "latte",
            Receivers = [new() { PhoneNumber = "+447700900777" }],
        },
    },
    request => request.Headers.Add("Idempotency-Key", "kiota"));
var gift = bought?.Data?.Gifts?[0] ?? throw new InvalidOperationException("nothing was bought");

var till = await LogIn("till-coffee");
var redemption = await till.Api.V2.Gifts[gift].Redemptions.PostAsync(new() { LocationId = "bean-soho" });
var seen = await buyer.Api.V2.Gifts[gift].GetAsync();
var unknown = "";
try
{
    await buyer.Api.V2.Gifts["unknown"].GetAsync();
}
catch (Error error)
{
    unknown = error.ErrorProp;
}
Console.WriteLine(JsonSerializer.Serialize(new
{
    redemption = redemption?.Data?.Id == seen?.Data?.RedeemedId,
    status = seen?.Data?.GiftStatus?.ToString()?.ToLowerInvariant(),
    unknown,
}));

sealed class FixedToken(string token) : IAccessTokenProvider
{
    public AllowedHostsValidator AllowedHostsValidator { get; } = new();

    public Task<string> GetAuthorizationTokenAsync(
        Uri uri,
        Dictionary<string, object>? context = null,
        CancellationToken cancellation = default) => Task.FromResult(token);
}
